package load

// silent is a gnet logger that says nothing: what goes wrong on a connection
// is counted in the Measurement and told by whoever prints it.
type silent struct{}

func (silent) Debugf(string, ...any) {}
func (silent) Infof(string, ...any)  {}
func (silent) Warnf(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(string, ...any) {}
