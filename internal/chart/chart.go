// Package chart draws the pictures of a report: curves of package analyze as
// SVG, in the colours of the reader's theme, and as PNG. It is the only package
// that knows gonum/plot, which lays out and draws; the SVG is written by a
// canvas of our own, so that each stroke has a class instead of a colour and
// each step says its values where the pointer rests.
//
// A chart judges nothing: knee, peak and ceiling come from the Analysis. The
// same input gives the same bytes.
package chart

import (
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// The size of a chart in points. An SVG is scaled to the room it has: so narrow
// that its text can be read on a telephone, so wide that a sweep of forty
// levels has room.
const (
	width  = vg.Length(460)
	height = vg.Length(300)

	fontSize = vg.Length(13)
	pngDPI   = 144
)

// A Chart is one picture.
type Chart struct {
	Name  string // for files and addresses: letters, digits and hyphens
	Title string // what is drawn, without a full stop

	// Text says in words what the picture shows, for those who cannot see it.
	Text string

	height vg.Length
	legend []entry
	panels []panel
}

// A panel is a plot of a chart. Those of one chart stand one below the other
// with one x axis in common.
type panel struct {
	plot  *plot.Plot
	share float64 // of the height
}

// SVG returns the chart as an SVG element to stand in an HTML page whose style
// sheet has the rules of Style. It has no identifiers, so any number of charts
// may stand in one page.
func (c *Chart) SVG() string {
	s := newSVG(width, c.height)
	c.draw(draw.New(s))
	return fmt.Sprintf("<svg class=\"chart\" role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %s %s\" xmlns=\"http://www.w3.org/2000/svg\">\n%s</svg>",
		html.EscapeString(c.Title+". "+c.Text), number(width), number(c.height), s.b.String())
}

// WriteSVG writes the chart as a file of its own, which follows the theme of
// the reader too.
func (c *Chart) WriteSVG(w io.Writer) error {
	body := c.SVG()
	open, rest, _ := strings.Cut(body, "\n")
	_, err := fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n%s\n<title>%s</title>\n<style>\n%s.chart { background: #fff }\n@media screen and (prefers-color-scheme: dark) { .chart { background: #16191d } }\n</style>\n%s\n",
		open, html.EscapeString(c.Title), Style(), rest)
	return err
}

// WritePNG writes the chart on white at twice its size.
func (c *Chart) WritePNG(w io.Writer) error {
	img := vgimg.NewWith(vgimg.UseWH(width, c.height), vgimg.UseDPI(pngDPI), vgimg.UseBackgroundColor(color.White))
	c.draw(draw.New(img))
	_, err := vgimg.PngCanvas{Canvas: img}.WriteTo(w)
	return err
}

// margin is what is left free around the plots.
const margin = vg.Length(4)

// draw draws the legend and below it the panels, whose axes are brought to
// stand one below the other.
func (c *Chart) draw(dc draw.Canvas) {
	dc = draw.Crop(dc, margin, -margin, margin, -margin)
	dc.Max.Y -= drawLegend(dc, c.legend)
	top := dc.Max.Y
	full := dc.Max.Y - dc.Min.Y
	areas := make([]draw.Canvas, len(c.panels))
	left, right := vg.Length(0), vg.Length(0)
	for i, p := range c.panels {
		areas[i] = dc
		areas[i].Max.Y = top
		top -= full * vg.Length(p.share)
		areas[i].Min.Y = top
		data := p.data(areas[i])
		left = max(left, data.Min.X-dc.Min.X)
		right = max(right, dc.Max.X-data.Max.X)
	}
	for i, p := range c.panels {
		p.draw(areas[i], left, right)
	}
}

// labelRoom is what the label of an axis takes.
const labelRoom = fontSize + 7

// inner returns the part of an area for all but the labels of the axes, and the
// plot without these. gonum takes the middle of the values for the middle of
// the axis, which it is not on a logarithmic one, and would keep room for
// labels beyond the plot.
func (p panel) inner(area draw.Canvas) (draw.Canvas, *plot.Plot) {
	bare := *p.plot
	if bare.X.Label.Text != "" {
		area.Min.Y += labelRoom
	}
	if bare.Y.Label.Text != "" {
		area.Min.X += labelRoom
	}
	bare.X.Label.Text, bare.Y.Label.Text = "", ""
	return area, &bare
}

// data returns the part of an area that the data take.
func (p panel) data(area draw.Canvas) draw.Canvas {
	inner, bare := p.inner(area)
	return bare.DataCanvas(inner)
}

// draw draws the panel with so much room beside its data, which must be as much
// as it needs.
func (p panel) draw(area draw.Canvas, left, right vg.Length) {
	inner, bare := p.inner(area)
	data := bare.DataCanvas(inner)
	inner.Min.X += left - (data.Min.X - area.Min.X)
	inner.Max.X -= right - (area.Max.X - data.Max.X)
	bare.Draw(inner)

	data = bare.DataCanvas(inner)
	sty := p.plot.X.Label.TextStyle
	descent := sty.FontExtents().Descent
	area.FillText(sty, vg.Point{X: data.Center().X, Y: area.Min.Y + descent}, p.plot.X.Label.Text)
	sty.Rotation = math.Pi / 2
	// Near an end of a low panel the label moves to the middle of its area.
	half := sty.Width(p.plot.Y.Label.Text) / 2
	y := max(min(data.Center().Y, area.Max.Y-half), area.Min.Y+half)
	area.FillText(sty, vg.Point{X: area.Min.X + fontSize, Y: y}, p.plot.Y.Label.Text)
}

// typeface is metric-compatible with Arial and Helvetica, which stand for it
// where it is not installed.
func typeface(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// newPlot returns an empty plot in the style of all.
func newPlot(xLabel, yLabel string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font = typeface(fontSize)
		a.Label.TextStyle.Color = inkText
		a.Tick.Label.Font = typeface(fontSize - 1)
		a.Tick.Label.Color = inkText
		a.Tick.LineStyle = draw.LineStyle{Color: inkAxis, Width: .7}
		a.Tick.Length = 4
		a.LineStyle = draw.LineStyle{Color: inkAxis, Width: .7}
		a.Padding = 0
	}
	p.X.Label.Text, p.Y.Label.Text = xLabel, yLabel
	return p
}
