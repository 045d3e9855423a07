package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// outside are what worker.yaml has made by hand, since they hold secrets.
var outside = map[string]bool{"Secret/compactd-worker": true, "Secret/compactd-agents": true, "Secret/compactd-agents-tls": true, "ConfigMap/compactd-nats-ca": true}

// checkKubernetes decodes every manifest, unknown and duplicate fields being errors, and
// checks that what they name is there.
func checkKubernetes(dir, policy string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return "", errors.Join(err, fmt.Errorf("no manifests in %s", dir))
	}
	found := map[string]runtime.Object{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil {
			err = add(found, data)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
	}
	if err := errors.Join(checkNames(found), writePolicy(found, "compactd-policy", policy)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d objects of %d files", len(found), len(files)), nil
}

// writePolicy writes the policy of a ConfigMap into a file; "" is none.
func writePolicy(found map[string]runtime.Object, name, file string) error {
	config, ok := found["ConfigMap/"+name].(*corev1.ConfigMap)
	if !ok {
		return fmt.Errorf("there is no ConfigMap %s", name)
	}
	if file == "" {
		return nil
	}
	return os.WriteFile(file, []byte(config.Data["policy.yaml"]), 0o600)
}

// add decodes manifests strictly.
func add(found map[string]runtime.Object, data []byte) error {
	objects, err := decode(data)
	for _, o := range objects {
		found[o.GetObjectKind().GroupVersionKind().Kind+"/"+o.(metav1.Object).GetName()] = o
	}
	return err
}

func decode(data []byte) ([]runtime.Object, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme, kedav1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var out []runtime.Object
	for r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		o, _, err := strict.Decode(doc, nil, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
}

// checkNames checks what one object refers to in another.
func checkNames(found map[string]runtime.Object) error {
	var errs []error
	want := func(by, name string) {
		if found[name] == nil && !outside[name] {
			errs = append(errs, fmt.Errorf("%s names %s, which is not there", by, name))
		}
	}
	for name, o := range found {
		switch o := o.(type) {
		case *appsv1.StatefulSet:
			want(name, "Service/"+o.Spec.ServiceName)
			errs = append(errs, selects(name, o.Spec.Selector, found))
			errs = append(errs, checkPod(name, &o.Spec, want))
		case *corev1.Service:
			errs = append(errs, selects(name, &metav1.LabelSelector{MatchLabels: o.Spec.Selector}, found), checkPorts(name, o, found))
		case *networkingv1.NetworkPolicy:
			errs = append(errs, selects(name, &o.Spec.PodSelector, found))
		case *policyv1.PodDisruptionBudget:
			errs = append(errs, selects(name, o.Spec.Selector, found))
		case *kedav1alpha1.ScaledObject:
			want(name, o.Spec.ScaleTargetRef.Kind+"/"+o.Spec.ScaleTargetRef.Name)
			errs = append(errs, kedav1alpha1.CheckFallbackValid(o), kedav1alpha1.ValidateTriggers(o.Spec.Triggers))
		case *corev1.ConfigMap:
		default:
			errs = append(errs, fmt.Errorf("nothing checks a %T", o))
		}
	}
	return errors.Join(errs...)
}

// checkPorts checks that a service leads to ports of the pods.
func checkPorts(by string, s *corev1.Service, found map[string]runtime.Object) error {
	named := map[string]bool{}
	for _, o := range found {
		set, ok := o.(*appsv1.StatefulSet)
		if !ok {
			continue
		}
		for _, c := range set.Spec.Template.Spec.Containers {
			for _, p := range c.Ports {
				named[p.Name] = true
			}
		}
	}
	for _, p := range s.Spec.Ports {
		if !named[p.TargetPort.StrVal] {
			return fmt.Errorf("%s leads to the port %s, which no container has", by, p.TargetPort.StrVal)
		}
	}
	return nil
}

func selects(by string, s *metav1.LabelSelector, found map[string]runtime.Object) error {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return fmt.Errorf("%s: %w", by, err)
	}
	for _, o := range found {
		if set, ok := o.(*appsv1.StatefulSet); ok && selector.Matches(labels.Set(set.Spec.Template.Labels)) {
			return nil
		}
	}
	return fmt.Errorf("%s selects no pod", by)
}

// checkPod checks that volumes, ports and settings are there, and that it runs without
// rights it does not need.
func checkPod(by string, set *appsv1.StatefulSetSpec, want func(by, name string)) error {
	var errs []error
	volumes := map[string]bool{}
	for _, v := range set.Template.Spec.Volumes {
		volumes[v.Name] = true
		if v.ConfigMap != nil {
			want(by, "ConfigMap/"+v.ConfigMap.Name)
		}
		if v.Secret != nil {
			want(by, "Secret/"+v.Secret.SecretName)
		}
	}
	for i := range set.VolumeClaimTemplates {
		volumes[set.VolumeClaimTemplates[i].Name] = true
	}
	for _, c := range set.Template.Spec.Containers {
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				errs = append(errs, fmt.Errorf("%s mounts %s, which is no volume", by, m.Name))
			}
		}
		for _, e := range c.EnvFrom {
			if e.ConfigMapRef != nil {
				want(by, "ConfigMap/"+e.ConfigMapRef.Name)
			}
			if e.SecretRef != nil {
				want(by, "Secret/"+e.SecretRef.Name)
			}
		}
		for what, p := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
			if p == nil || p.Exec == nil || !strings.HasPrefix(strings.Join(p.Exec.Command, " "), "/usr/local/bin/compactd-worker ready") {
				errs = append(errs, fmt.Errorf("%s: the %s probe does not ask the worker", by, what))
			}
		}
		if s := c.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
			errs = append(errs, fmt.Errorf("%s: container %s has more rights than it needs", by, c.Name))
		}
	}
	return errors.Join(errs...)
}
