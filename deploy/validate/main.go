// Command validate checks the files of this directory that no tool of Debian checks: it
// decodes the manifests for Kubernetes, KEDA and of the Helm chart, which it lints, strictly into their Go types, loads the
// compose file against its schema, and parses the Dockerfile as BuildKit does. It has a
// module of its own, so that compactd links none of this.
//
//	cd deploy/validate && go run . -policy /tmp/policy.yaml ..
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	policy := flag.String("policy", "", "file that gets the policy of the ConfigMap")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: validate [-policy FILE] DEPLOY-DIRECTORY")
		os.Exit(2)
	}
	root := flag.Arg(0)
	failed := false
	for _, check := range []struct {
		what string
		run  func() (string, error)
	}{
		{"kubernetes", func() (string, error) { return checkKubernetes(filepath.Join(root, "kubernetes"), *policy) }},
		{"helm", func() (string, error) { return checkHelm(filepath.Join(root, "helm", "compactd"), *policy) }},
		{"compose", func() (string, error) { return checkCompose(filepath.Join(root, "docker", "compose.yaml")) }},
		{"dockerfile", func() (string, error) { return checkDockerfile(filepath.Join(root, "docker", "Dockerfile")) }},
	} {
		found, err := check.run()
		if err != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "%s: %v\n", check.what, err)
			continue
		}
		fmt.Printf("%s: %s\n", check.what, found)
	}
	if failed {
		os.Exit(1)
	}
}
