// Package browser tests the page that a worker serves, in Chromium and before a real worker, which
// replays the sessions of examples. It is a module of its own: no program links a browser's protocol.
//
//	make test-console                                    # from the root
//	make test-console ARGS='-run Keyboard'
//	make test-console ARGS='-run Pictures -pictures'     # write docs/console
//
// CHROMIUM is the browser, BIN the directory of worker and publisher, and AXE the file of axe-core;
// scripts/console sets them.
package browser
