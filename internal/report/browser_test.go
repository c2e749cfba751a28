package report

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "folder for pictures of the pages in a browser, to be looked at")

// browsers are the names of the programs that can show a page, best first.
var browsers = []string{"chromium-headless-shell", "headless_shell", "chromium", "chromium-browser", "google-chrome"}

// browser returns the context of a headless browser, or skips the test where
// there is none.
func browser(t *testing.T) context.Context {
	t.Helper()
	var program string
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skipf("no browser: none of %s is installed", strings.Join(browsers, ", "))
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program), chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses to run as root otherwise
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	// Requests and log entries are told only when asked for.
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	if err == nil {
		_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	}
	if err != nil {
		t.Skipf("starting %s: %v", program, err)
	}
	return ctx
}

// overlaps is a function of the page that returns the pairs of texts of which
// one covers part of the other, and what is wider than the page.
//
//go:embed testdata/overlaps.js
var overlaps string

// TestBrowser looks at each scene in a browser, on a screen and on a
// telephone, in the light and in the dark: nothing is asked of the network,
// nothing is wrong on the console, no text covers another, and the page is not
// wider than the screen.
func TestBrowser(t *testing.T) {
	ctx := browser(t)
	console := newConsole(ctx, t)
	folder := t.TempDir()
	for name := range scenes {
		page := filepath.Join(folder, name+".html")
		if err := os.WriteFile(page, []byte(writeHTML(t, sceneDocument(t, name))), 0o600); err != nil {
			t.Fatal(err)
		}
		address := (&url.URL{Scheme: "file", Path: filepath.ToSlash(page)}).String()
		for _, width := range []int64{1280, 400} {
			for _, theme := range []string{"light", "dark"} {
				look(ctx, t, console, address, fmt.Sprintf("%s-%d-%s", name, width, theme), width, theme)
			}
		}
	}
}

// look shows a page and reports what is wrong with it.
func look(ctx context.Context, t *testing.T, c *console, address, name string, width int64, theme string) {
	t.Helper()
	c.clear()
	media(ctx, t, "screen", theme)
	err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 800), chromedp.Navigate(address))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, w := range append(evaluate[[]string](ctx, t, overlaps), c.wrong(address)...) {
		t.Errorf("%s: %s", name, w)
	}
	paper := evaluate[string](ctx, t, `getComputedStyle(document.body).backgroundColor`)
	if light := paper == "rgb(255, 255, 255)"; light != (theme == "light") {
		t.Errorf("%s: the paper is %s", name, paper)
	}
	if *screenshots != "" {
		shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), shot, 0o600); err != nil {
			t.Error(err)
		}
	}
}

// TestBrowserPaper: on paper the page is light, whatever the theme.
func TestBrowserPaper(t *testing.T) {
	ctx := browser(t)
	page := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(page, []byte(writeHTML(t, sceneDocument(t, "plateau"))), 0o600); err != nil {
		t.Fatal(err)
	}
	media(ctx, t, "print", "dark")
	if err := chromedp.Do(ctx, chromedp.Navigate((&url.URL{Scheme: "file", Path: filepath.ToSlash(page)}).String())); err != nil {
		t.Fatal(err)
	}
	paper := evaluate[string](ctx, t, `getComputedStyle(document.body).backgroundColor`)
	knee := evaluate[string](ctx, t, `getComputedStyle(document.querySelector(".chart .knee")).color`)
	if paper != "rgb(255, 255, 255)" || knee != "rgb(179, 38, 30)" {
		t.Errorf("paper %s, knee %s", paper, knee)
	}
}

// media sets the medium and the theme of the pages that follow.
func media(ctx context.Context, t *testing.T, medium, theme string) {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// evaluate returns the value of an expression in the page. The page's own rule
// that forbids scripts does not concern it.
func evaluate[T any](ctx context.Context, t *testing.T, expression string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A console keeps what a page asked for and complained about.
type console struct {
	mu       sync.Mutex
	requests []string
	problems []string
}

func newConsole(ctx context.Context, t *testing.T) *console {
	t.Helper()
	c := new(console)
	err := chromedp.Listen(ctx, func(event any) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			c.requests = append(c.requests, e.Request.URL)
		case *runtime.EventConsoleAPICalled:
			c.problems = append(c.problems, fmt.Sprintf("console: %v", e.Args))
		case *runtime.EventExceptionThrown:
			c.problems = append(c.problems, "exception: "+e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			c.problems = append(c.problems, fmt.Sprintf("%s: %s", e.Entry.Level, e.Entry.Text))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *console) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests, c.problems = nil, nil
}

// wrong returns the problems, and every request but that for the page itself
// and for what it holds.
func (c *console) wrong(address string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	wrong := slices.Clone(c.problems)
	asked := false
	for _, r := range c.requests {
		asked = asked || r == address
		if r != address && !strings.HasPrefix(r, "data:") {
			wrong = append(wrong, "a request for "+r)
		}
	}
	if !asked {
		wrong = append(wrong, "no request for the page was seen: requests are not watched")
	}
	return wrong
}

// TestBrowserCatches: what TestBrowser looks for is found where it is.
func TestBrowserCatches(t *testing.T) {
	ctx := browser(t)
	c := newConsole(ctx, t)
	page := filepath.Join(t.TempDir(), "bad.html")
	const bad = `<!DOCTYPE html><title>bad</title>
<p style="position: absolute; top: 50px; left: 10px">covered</p><p style="position: absolute; top: 55px; left: 20px">covering</p>
<p style="width: 2000px">wide</p>
<svg width="100" height="20"><text x="80" y="10" font-size="10">beyond</text></svg>
<img src="missing.png" alt=""><script>console.error("complaint"); throw new Error("mistake")</script>`
	if err := os.WriteFile(page, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	address := (&url.URL{Scheme: "file", Path: filepath.ToSlash(page)}).String()
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(400, 800), chromedp.Navigate(address)); err != nil {
		t.Fatal(err)
	}
	wrong := strings.Join(append(evaluate[[]string](ctx, t, overlaps), c.wrong(address)...), "\n")
	for _, want := range []string{`"covered" and "covering" overlap`, "lies beyond the edge", "the page is 2", "missing.png", "console:", "exception:"} {
		if !strings.Contains(wrong, want) {
			t.Errorf("no %q in:\n%s", want, wrong)
		}
	}
}
