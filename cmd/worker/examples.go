package main

// Help has examples.
func (*serveCmd) Help() string {
	return `Examples:
  worker                                  # embedded server on 127.0.0.1:4222, state in ./data
  worker --listen 127.0.0.1:-1 --data /var/lib/compactd --log-format json
  worker --nats nats://broker:4222 --creds worker.creds
  worker --policy claude --set prune.micro.every_turn=true`
}

// Help has examples.
func (*policyCmd) Help() string {
	return `Examples:
  worker policy
  worker policy --policy policy.yaml --tenant acme`
}

// Help has examples.
func (*inspectCmd) Help() string {
	return `Examples:
  worker inspect
  worker inspect --json --nats nats://broker:4222`
}

// Help has examples.
func (*doctorCmd) Help() string {
	return `Examples:
  worker doctor
  worker doctor --nats nats://broker:4222 --json`
}

// Help has examples.
func (*readyCmd) Help() string {
	return `Examples:
  worker ready
  worker ready --live --http 127.0.0.1:8223`
}

// Help has examples.
func (*forgetCmd) Help() string {
	return `Examples:
  worker forget acme s1 --nats nats://broker:4222
  worker forget default s1 --yes --json`
}
