package chart

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// grid draws a line across the plot at each mark of its y axis.
type grid struct{}

func (grid) Plot(c draw.Canvas, p *plot.Plot) {
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		y := c.Y(p.Y.Norm(t.Value))
		c.StrokeLine2(draw.LineStyle{Color: inkGrid, Width: .7}, c.Min.X, y, c.Max.X, y)
	}
}

// A band shades the plot between two values of x.
type band struct{ low, high float64 }

func (b band) Plot(c draw.Canvas, p *plot.Plot) {
	r := vg.Rectangle{
		Min: vg.Point{X: c.X(p.X.Norm(b.low)), Y: c.Min.Y},
		Max: vg.Point{X: c.X(p.X.Norm(b.high)), Y: c.Max.Y},
	}
	c.SetColor(inkBand)
	c.Fill(r.Path())
}

// A rule is a line from bottom to top at a value of x.
type rule struct {
	x     float64
	style draw.LineStyle
}

func (r rule) Plot(c draw.Canvas, p *plot.Plot) {
	x := c.X(p.X.Norm(r.x))
	c.StrokeLine2(r.style, x, c.Min.Y, x, c.Max.Y)
}

// A note is what a chart says of a value of x where the pointer rests.
type note struct {
	x    float64
	text string
}

// notes tells each note over the part of the plot that is nearest to its x, so
// that nobody has to hit a dot. Values of x must rise.
type notes []note

// svgOf returns the svg below a canvas, nil when it draws something else.
func svgOf(c draw.Canvas) *svg {
	for {
		switch below := c.Canvas.(type) {
		case *svg:
			return below
		case draw.Canvas: // a part of another one
			c = below
		default:
			return nil
		}
	}
}

func (n notes) Plot(c draw.Canvas, p *plot.Plot) {
	s := svgOf(c)
	if s == nil {
		return
	}
	at := func(i int) vg.Length { return c.X(p.X.Norm(n[i].x)) }
	for i := range n {
		r := c.Rectangle
		if i > 0 {
			r.Min.X = (at(i-1) + at(i)) / 2
		}
		if i < len(n)-1 {
			r.Max.X = (at(i) + at(i+1)) / 2
		}
		s.tell(r, n[i].text)
	}
}

// A dot is a glyph that says something where the pointer rests on it.
type dot struct {
	x, y  float64
	style draw.GlyphStyle
	text  string // "" says nothing
}

type dots []dot

// reach is how far from a dot the pointer may rest.
const reach = vg.Length(5)

func (d dots) Plot(c draw.Canvas, p *plot.Plot) {
	s := svgOf(c)
	for _, one := range d {
		at := vg.Point{X: c.X(p.X.Norm(one.x)), Y: c.Y(p.Y.Norm(one.y))}
		c.DrawGlyphNoClip(one.style, at)
		if s != nil && one.text != "" {
			s.tell(vg.Rectangle{
				Min: vg.Point{X: at.X - reach, Y: at.Y - reach},
				Max: vg.Point{X: at.X + reach, Y: at.Y + reach},
			}, one.text)
		}
	}
}

// GlyphBoxes keeps room at the edges of the plot for dots on its border.
func (d dots) GlyphBoxes(p *plot.Plot) []plot.GlyphBox {
	boxes := make([]plot.GlyphBox, len(d))
	for i, one := range d {
		boxes[i] = plot.GlyphBox{X: p.X.Norm(one.x), Y: p.Y.Norm(one.y), Rectangle: one.style.Rectangle()}
	}
	return boxes
}

func line(points plotter.XYs, style draw.LineStyle) *plotter.Line {
	return &plotter.Line{XYs: points, LineStyle: style}
}

func glyph(i *ink, radius vg.Length, shape draw.GlyphDrawer) draw.GlyphStyle {
	return draw.GlyphStyle{Color: i, Radius: radius, Shape: shape}
}

// diamond is a filled square on its corner.
type diamond struct{}

func (diamond) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	r := sty.Radius
	var p vg.Path
	p.Move(vg.Point{X: at.X, Y: at.Y + r})
	p.Line(vg.Point{X: at.X + r, Y: at.Y})
	p.Line(vg.Point{X: at.X, Y: at.Y - r})
	p.Line(vg.Point{X: at.X - r, Y: at.Y})
	p.Close()
	c.Fill(p)
}

// ring and frame are a circle and a square with nothing inside.
type (
	ring  struct{ width vg.Length }
	frame struct{ width vg.Length }
)

func (g ring) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	c.SetLineStyle(draw.LineStyle{Color: sty.Color, Width: g.width})
	var p vg.Path
	p.Move(vg.Point{X: at.X + sty.Radius, Y: at.Y})
	p.Arc(at, sty.Radius, 0, 2*math.Pi)
	p.Close()
	c.Stroke(p)
}

func (g frame) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	c.SetLineStyle(draw.LineStyle{Color: sty.Color, Width: g.width})
	r := sty.Radius
	box := vg.Rectangle{Min: vg.Point{X: at.X - r, Y: at.Y - r}, Max: vg.Point{X: at.X + r, Y: at.Y + r}}
	c.Stroke(box.Path())
}

// An entry is one thing that the legend explains: a line, a glyph or a patch.
type entry struct {
	text  string
	line  draw.LineStyle
	glyph draw.GlyphStyle
	patch bool // the band

	clients int // where a landmark is, 0 for what is none
}

const (
	sample    = vg.Length(20) // of a line
	sampleGap = vg.Length(5)
	entryGap  = vg.Length(14)
	rowHeight = vg.Length(17)
)

// drawLegend draws the entries at the upper edge of the canvas, in as many rows
// as they need, and returns their height. Beside the plot they could cover no
// data, and inside it they would.
func drawLegend(c draw.Canvas, entries []entry) vg.Length {
	if len(entries) == 0 {
		return 0
	}
	style := text.Style{
		Color: inkText, Font: typeface(fontSize - 1), Handler: plot.DefaultTextHandler,
		XAlign: draw.XLeft, YAlign: draw.YCenter,
	}
	x, y := c.Min.X, c.Max.Y-rowHeight/2
	for _, e := range entries {
		w := sample + sampleGap + style.Width(e.text)
		if x > c.Min.X && x+w > c.Max.X {
			x, y = c.Min.X, y-rowHeight
		}
		e.draw(c, vg.Point{X: x, Y: y})
		c.FillText(style, vg.Point{X: x + sample + sampleGap, Y: y}, e.text)
		x += w + entryGap
	}
	return c.Max.Y - y + rowHeight/2 + 4
}

// draw draws the sample of an entry, from its left end.
func (e entry) draw(c draw.Canvas, at vg.Point) {
	if e.patch {
		r := vg.Rectangle{Min: vg.Point{X: at.X, Y: at.Y - 5}, Max: vg.Point{X: at.X + sample, Y: at.Y + 5}}
		c.SetColor(inkBand)
		c.Fill(r.Path())
	}
	if e.line.Width > 0 {
		c.StrokeLine2(e.line, at.X, at.Y, at.X+sample, at.Y)
	}
	if e.glyph.Shape != nil {
		c.DrawGlyphNoClip(e.glyph, vg.Point{X: at.X + sample/2, Y: at.Y})
	}
}
