package chart

import (
	"fmt"
	"image/color"
	"strings"
)

// An ink is a colour that has a name: on paper and in a PNG it is light's, on a
// screen the theme's. It travels through gonum/plot as the color.Color that it
// is and comes out at the canvas.
type ink struct {
	class       string
	light, dark uint32  // 0xRRGGBB
	opacity     float64 // 0 means 1
}

// RGBA returns the colour of the light theme.
func (i *ink) RGBA() (r, g, b, a uint32) {
	c := color.NRGBA{uint8(i.light >> 16), uint8(i.light >> 8), uint8(i.light), 255}
	if i.opacity > 0 {
		c.A = uint8(255*i.opacity + .5)
	}
	return c.RGBA()
}

// The inks. Those of text and lines have a contrast of 4.5 and more to the
// background of both themes, but for the grid and the band, which carry nothing
// that is not said elsewhere.
var (
	inkText  = &ink{class: "text", light: 0x1f2933, dark: 0xe4e7eb}
	inkAxis  = &ink{class: "axis", light: 0x5b6673, dark: 0x9aa5b1}
	inkGrid  = &ink{class: "grid", light: 0xdfe3e8, dark: 0x353b43}
	inkTrial = &ink{class: "trial", light: 0x5f7388, dark: 0x8b9bae}

	inkMedian  = &ink{class: "median", light: 0x1d5fa8, dark: 0x6cb0f5}
	inkKnee    = &ink{class: "knee", light: 0xb3261e, dark: 0xff8a80}
	inkBand    = &ink{class: "band", light: 0xb3261e, dark: 0xff8a80, opacity: .13}
	inkPeak    = &ink{class: "peak", light: 0x6b3fa0, dark: 0xc9a4ff}
	inkCeiling = &ink{class: "ceiling", light: 0x8a5a00, dark: 0xf0b94a}
	inkUSL     = &ink{class: "usl", light: 0x1b7a4b, dark: 0x5fd39a}

	inkServer    = &ink{class: "server", light: 0x0b6e75, dark: 0x4fd1d9}
	inkGenerator = &ink{class: "generator", light: 0xb45309, dark: 0xf6ad55}

	inkP50  = &ink{class: "p50", light: 0x1d5fa8, dark: 0x6cb0f5}
	inkP99  = &ink{class: "p99", light: 0xb45309, dark: 0xf6ad55}
	inkP999 = &ink{class: "p999", light: 0xa3195b, dark: 0xff8cc0}

	// inkDepths are those of the sweeps of a surface, in turn.
	inkDepths = []*ink{
		{class: "depth-a", light: 0x1d5fa8, dark: 0x6cb0f5},
		{class: "depth-b", light: 0xb45309, dark: 0xf6ad55},
		{class: "depth-c", light: 0x1b7a4b, dark: 0x5fd39a},
		{class: "depth-d", light: 0x6b3fa0, dark: 0xc9a4ff},
		{class: "depth-e", light: 0xa3195b, dark: 0xff8cc0},
		{class: "depth-f", light: 0x0b6e75, dark: 0x4fd1d9},
	}
)

// inks returns all inks.
func inks() []*ink {
	return append([]*ink{
		inkText, inkAxis, inkGrid, inkTrial, inkMedian, inkKnee, inkBand, inkPeak, inkCeiling, inkUSL,
		inkServer, inkGenerator, inkP50, inkP99, inkP999,
	}, inkDepths...)
}

// Style returns the rules of a style sheet that the charts of a page need: a
// colour for each ink in the light theme, which is also that of paper, and in
// the dark one.
func Style() string {
	var b strings.Builder
	b.WriteString(".chart { display: block; width: 100%; height: auto; font-family: \"Liberation Sans\", Arial, Helvetica, sans-serif }\n")
	b.WriteString(".chart text { fill: currentColor }\n")
	for _, i := range inks() {
		fmt.Fprintf(&b, ".chart .%s { color: #%06x }\n", i.class, i.light)
	}
	b.WriteString("@media screen and (prefers-color-scheme: dark) {\n")
	for _, i := range inks() {
		fmt.Fprintf(&b, "  .chart .%s { color: #%06x }\n", i.class, i.dark)
	}
	b.WriteString("}\n")
	return b.String()
}
