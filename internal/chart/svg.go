package chart

import (
	"fmt"
	"html"
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// An svg is a vg.Canvas that writes SVG elements. Where gonum's own writes
// colours, it writes the class of the ink; its coordinates are final, without
// nested transforms, so that text can be found and measured in a browser.
type svg struct {
	w, h  vg.Length
	b     strings.Builder
	state state
	stack []state
}

// A state is what Push keeps.
type state struct {
	color  color.Color
	width  vg.Length
	dashes []vg.Length
	m      matrix
}

// A matrix maps (x, y) to (a·x + c·y + e, b·x + d·y + f).
type matrix struct{ a, b, c, d, e, f float64 }

func newSVG(w, h vg.Length) *svg {
	s := &svg{w: w, h: h, state: state{m: matrix{a: 1, d: 1}}}
	vg.Initialize(s)
	return s
}

func (s *svg) Size() (w, h vg.Length)                 { return s.w, s.h }
func (s *svg) SetLineWidth(w vg.Length)               { s.state.width = w }
func (s *svg) SetLineDash(d []vg.Length, _ vg.Length) { s.state.dashes = d }
func (s *svg) SetColor(c color.Color)                 { s.state.color = c }
func (s *svg) Push()                                  { s.stack = append(s.stack, s.state) }
func (s *svg) DrawImage(vg.Rectangle, image.Image)    {} // no chart has one
func (s *svg) Translate(p vg.Point)                   { s.apply(matrix{1, 0, 0, 1, float64(p.X), float64(p.Y)}) }
func (s *svg) Scale(x, y float64)                     { s.apply(matrix{x, 0, 0, y, 0, 0}) }

func (s *svg) Rotate(rad float64) {
	sin, cos := math.Sincos(rad)
	s.apply(matrix{cos, sin, -sin, cos, 0, 0})
}

func (s *svg) Pop() {
	s.state = s.stack[len(s.stack)-1]
	s.stack = s.stack[:len(s.stack)-1]
}

// apply puts a transform before those in force.
func (s *svg) apply(n matrix) {
	m := s.state.m
	s.state.m = matrix{
		m.a*n.a + m.c*n.b, m.b*n.a + m.d*n.b,
		m.a*n.c + m.c*n.d, m.b*n.c + m.d*n.d,
		m.a*n.e + m.c*n.f + m.e, m.b*n.e + m.d*n.f + m.f,
	}
}

// at returns where a point is in the picture, whose y axis points down.
func (s *svg) at(p vg.Point) (x, y vg.Length) {
	m := s.state.m
	px, py := float64(p.X), float64(p.Y)
	return vg.Length(m.a*px + m.c*py + m.e), s.h - vg.Length(m.b*px+m.d*py+m.f)
}

// class returns the class of the colour in force. Everything here is drawn with
// an ink but for what gonum draws by default, which is text.
func (s *svg) class() (class, opacity string) {
	i, ok := s.state.color.(*ink)
	if !ok {
		i = inkText
	}
	if i.opacity > 0 {
		opacity = fmt.Sprintf(" opacity=\"%v\"", i.opacity)
	}
	return i.class, opacity
}

func (s *svg) Stroke(p vg.Path) {
	if s.state.width <= 0 {
		return
	}
	dashes := ""
	if len(s.state.dashes) > 0 {
		var d []string
		for _, l := range s.state.dashes {
			d = append(d, number(l))
		}
		dashes = fmt.Sprintf(" stroke-dasharray=\"%s\"", strings.Join(d, " "))
	}
	class, opacity := s.class()
	fmt.Fprintf(&s.b, "<path class=\"%s\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"%s\"%s%s d=\"%s\"/>\n",
		class, number(s.state.width), dashes, opacity, s.data(p))
}

func (s *svg) Fill(p vg.Path) {
	class, opacity := s.class()
	fmt.Fprintf(&s.b, "<path class=\"%s\" fill=\"currentColor\"%s d=\"%s\"/>\n", class, opacity, s.data(p))
}

func (s *svg) FillString(f font.Face, p vg.Point, text string) {
	if text == "" || f.Font.Size == 0 {
		return
	}
	x, y := s.at(p)
	turn := ""
	if angle := math.Atan2(s.state.m.b, s.state.m.a); angle != 0 {
		turn = fmt.Sprintf(" transform=\"rotate(%s %s %s)\"", number(vg.Length(-angle*180/math.Pi)), number(x), number(y))
	}
	class, _ := s.class()
	// Where the typeface is not there, another one takes the room that was
	// laid out for it.
	fmt.Fprintf(&s.b, "<text class=\"%s\" x=\"%s\" y=\"%s\" font-size=\"%s\" textLength=\"%s\" lengthAdjust=\"spacingAndGlyphs\"%s>%s</text>\n",
		class, number(x), number(y), number(f.Font.Size), number(f.Width(text)), turn, html.EscapeString(text))
}

// tell says something where the pointer rests within the rectangle. It is drawn
// before what is to be seen above it.
func (s *svg) tell(r vg.Rectangle, text string) {
	x, y := s.at(vg.Point{X: r.Min.X, Y: r.Max.Y})
	size := r.Size()
	fmt.Fprintf(&s.b, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"none\" pointer-events=\"all\"><title>%s</title></rect>\n",
		number(x), number(y), number(size.X), number(size.Y), html.EscapeString(text))
}

// data returns the path in SVG's words.
func (s *svg) data(p vg.Path) string {
	var b strings.Builder
	to := func(command string, points ...vg.Point) {
		b.WriteString(command)
		for i, p := range points {
			if i > 0 {
				b.WriteByte(' ')
			}
			x, y := s.at(p)
			b.WriteString(number(x) + " " + number(y))
		}
	}
	for _, c := range p {
		switch c.Type {
		case vg.MoveComp:
			to("M", c.Pos)
		case vg.LineComp:
			to("L", c.Pos)
		case vg.CurveComp:
			command := map[int]string{1: "Q", 2: "C"}[len(c.Control)]
			to(command, append(c.Control[:len(c.Control):len(c.Control)], c.Pos)...)
		case vg.ArcComp:
			to("L", onCircle(c, 0))
			// SVG cannot draw a whole circle at once: two halves.
			for _, part := range []float64{.5, 1} {
				to(arcTo(c), onCircle(c, part))
			}
		case vg.CloseComp:
			b.WriteByte('Z')
		}
	}
	return b.String()
}

// arcTo returns the command for half of an arc of at most a whole circle.
func arcTo(c vg.PathComp) string {
	sweep := 0 // against the clock, as y now points down
	if c.Angle < 0 {
		sweep = 1
	}
	return fmt.Sprintf("A%s %s 0 0 %d ", number(c.Radius), number(c.Radius), sweep)
}

// onCircle returns the point of an arc after that part of its angle.
func onCircle(c vg.PathComp, part float64) vg.Point {
	sin, cos := math.Sincos(c.Start + part*c.Angle)
	return vg.Point{X: c.Pos.X + c.Radius*vg.Length(cos), Y: c.Pos.Y + c.Radius*vg.Length(sin)}
}

// number prints a length with two decimals at most.
func number(l vg.Length) string {
	x := math.Round(float64(l)*100) / 100
	if x == 0 {
		x = 0 // not −0
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}
