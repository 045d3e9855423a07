package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"
)

// Durability is the kind of failure that an acknowledged message survives.
type Durability string

const (
	// DurableProcess: the end of the process, even by kill -9. A power loss may
	// lose the last second. The default.
	DurableProcess Durability = "process"
	// DurablePower: also a power loss. Every message waits for the disk.
	DurablePower Durability = "power"
)

// DefaultMaxPayload is the embedded server's limit for one message, in bytes.
const DefaultMaxPayload = 8 << 20

// Config describes an embedded server.
type Config struct {
	// Dir holds the streams. A missing directory is created with mode 0700.
	Dir string
	// Listen is host:port for clients. Port -1 or 0 picks a free port; a missing host
	// is 127.0.0.1. "" opens no socket: only this process connects.
	Listen string
	// Durability defaults to [DurableProcess].
	Durability Durability
	// MaxPayload bounds one message, in bytes. Default [DefaultMaxPayload].
	MaxPayload int
	// MaxStore limits the bytes that all streams together may reserve. The default of 1 PiB
	// is practically no limit: the server compares it with the sum of the streams'
	// MaxBytes and never with the disk.
	MaxStore int64
	// Log receives the server's log: level is info, warn, error or fatal. Many
	// goroutines call it. It may be nil.
	Log func(level, text string)
}

// Server is an embedded NATS server with JetStream. It handles no signals.
type Server struct {
	nats *server.Server
	dir  string
	lock *os.File
	stop func()
}

// maxStreamBytes is the highest proposal of StreamBytes.
const maxStreamBytes = 20 << 30

// startTimeout limits a start. The recovery of a large store takes longest: the server reads the
// index of every block that was not closed cleanly.
const startTimeout = 5 * time.Minute

// Start starts a server on cfg.Dir and returns when it accepts connections. It fails if
// another process holds the directory or the port.
func Start(cfg Config) (*Server, error) {
	opts, err := cfg.options()
	if err != nil {
		return nil, fmt.Errorf("start embedded server: %w", err)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("start embedded server: %w", err)
	}
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("start embedded server: %w", err)
	}
	s := &Server{dir: cfg.Dir, lock: lock}
	s.stop = sync.OnceFunc(s.shutdown)
	log := &serverLog{out: cfg.Log, fatal: make(chan string, 1)}
	if s.nats, err = server.NewServer(opts); err != nil {
		s.Stop()
		return nil, fmt.Errorf("start embedded server: %w", err)
	}
	s.nats.SetLoggerV2(log, false, false, false)
	err = s.await(log)
	log.started.Store(true)
	if err != nil {
		s.Stop()
		return nil, fmt.Errorf("start embedded server: %w", err)
	}
	return s, nil
}

// ClientURL returns the URL for other processes; "" without a listener.
func (s *Server) ClientURL() string {
	if s.nats.Addr() == nil {
		return ""
	}
	return s.nats.ClientURL()
}

// InProcessConn returns a connection without a socket. It implements nats.InProcessConnProvider.
func (s *Server) InProcessConn() (net.Conn, error) { return s.nats.InProcessConn() }

// StreamBytes proposes a bound for each of the two streams: a quarter of the free disk space,
// at most 20 GiB. Use it only for new streams: later it would shrink with the disk space
// that the streams have used.
func (s *Server) StreamBytes() int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return maxStreamBytes
	}
	free := int64(uint64(st.Bavail) * uint64(st.Bsize) / 4) //nolint:unconvert // the types of the fields depend on the platform
	return max(min(free, maxStreamBytes), 64<<20)
}

// Stop shuts down, waits until the store is closed, and releases the directory.
// Close connections first: an open one would try to reconnect forever. A second
// call does nothing.
func (s *Server) Stop() { s.stop() }

func (s *Server) shutdown() {
	if s.nats != nil {
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
	}
	_ = s.lock.Close() // releases the lock; the file stays: another process may lock it at any time
}

func (s *Server) await(log *serverLog) error {
	go s.nats.Start()
	ready := make(chan bool, 1)
	go func() { ready <- s.nats.ReadyForConnections(startTimeout) }()
	select {
	case ok := <-ready:
		// The listener opens even if JetStream failed.
		select {
		case text := <-log.fatal:
			return errors.New(text)
		default:
		}
		if !ok {
			return fmt.Errorf("not ready after %s", startTimeout)
		}
		if !s.nats.JetStreamEnabled() {
			return errors.New("JetStream did not start")
		}
		return nil
	case text := <-log.fatal:
		return errors.New(text)
	}
}

func (cfg *Config) options() (*server.Options, error) {
	var errs []error
	if cfg.Dir == "" {
		errs = append(errs, errors.New("dir is empty"))
	}
	if cfg.MaxPayload < 0 || cfg.MaxPayload > 64<<20 {
		errs = append(errs, fmt.Errorf("max payload of %d bytes is not within 1 and 64 MiB", cfg.MaxPayload))
	}
	if cfg.MaxStore < 0 {
		errs = append(errs, fmt.Errorf("max store of %d bytes is negative", cfg.MaxStore))
	}
	o := &server.Options{
		ServerName:             "compactd",
		DontListen:             cfg.Listen == "",
		JetStream:              true,
		StoreDir:               cfg.Dir,
		JetStreamMaxStore:      cmp.Or(cfg.MaxStore, 1<<50),
		MaxPayload:             int32(cmp.Or(cfg.MaxPayload, DefaultMaxPayload)),
		NoSigs:                 true,
		DisableJetStreamBanner: true,
		// The server cuts off a client with more bytes in flight. Eight partitions that catch
		// up on turns of 4 MiB would reach the default of 64 MiB.
		MaxPending: 1 << 30,
	}
	switch cmp.Or(cfg.Durability, DurableProcess) {
	case DurableProcess:
		o.SyncInterval = time.Second
	case DurablePower:
		o.SyncAlways = true
	default:
		errs = append(errs, fmt.Errorf("durability %q is neither process nor power", cfg.Durability))
	}
	if cfg.Listen != "" {
		var err error
		if o.Host, o.Port, err = splitListen(cfg.Listen); err != nil {
			errs = append(errs, err)
		}
	}
	return o, errors.Join(errs...)
}

func splitListen(listen string) (host string, port int, err error) {
	text := listen
	if strings.Contains(listen, ":") {
		if host, text, err = net.SplitHostPort(listen); err != nil {
			return "", 0, fmt.Errorf("listen on %q: want host:port, as in 127.0.0.1:4222", listen)
		}
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < -1 || port > 65535 {
		return "", 0, fmt.Errorf("listen on %q: port is not -1 to 65535", listen)
	}
	return cmp.Or(host, "127.0.0.1"), cmp.Or(port, -1), nil // 0 means 4222 to the server
}

const lockName = "compactd.lock"

// lockDir locks the directory for this process. The lock belongs to the open file, so the
// kernel releases it at any end of the process.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		holder := "another process"
		pid := make([]byte, 20)
		if n, _ := f.ReadAt(pid, 0); n > 0 {
			holder = "process " + strings.TrimSpace(string(pid[:n]))
		}
		return nil, &DirInUseError{Dir: dir, Holder: holder}
	}
	if err := errors.Join(f.Truncate(0), writePID(f)); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return f, nil
}

func writePID(f *os.File) error {
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// DirInUseError reports that another server holds the store directory.
type DirInUseError struct {
	Dir    string
	Holder string // "process 4711"
}

func (e *DirInUseError) Error() string {
	return fmt.Sprintf("%s is in use by %s; stop it, connect to it with --nats, or choose another --data", e.Dir, e.Holder)
}

// serverLog passes on the server's log and intercepts fatal messages, which would end the process.
type serverLog struct {
	out     func(level, text string)
	fatal   chan string
	started atomic.Bool // before it a fatal message is the error of Start, and is not logged
}

func (l *serverLog) write(level, format string, v []any) {
	if l.out != nil {
		l.out(level, fmt.Sprintf(format, v...))
	}
}

func (l *serverLog) Noticef(format string, v ...any) { l.write("info", format, v) }
func (l *serverLog) Warnf(format string, v ...any)   { l.write("warn", format, v) }
func (l *serverLog) Errorf(format string, v ...any)  { l.write("error", format, v) }
func (l *serverLog) Debugf(string, ...any)           {}
func (l *serverLog) Tracef(string, ...any)           {}

func (l *serverLog) Fatalf(format string, v ...any) {
	if l.started.Load() {
		l.write("fatal", format, v)
		return
	}
	text := fmt.Sprintf(format, v...)
	if strings.Contains(text, "address already in use") {
		text += "; another server listens there: choose another --listen (port -1 picks a free one)"
	}
	select {
	case l.fatal <- text:
	default:
	}
}
