// Package sdktest holds package provider to the official SDKs of OpenAI, Anthropic and
// Google, and to the signer of AWS. It is a module of its own: the SDKs would be most of
// a build of compactd.
//
//	make sdk-test
//
// Both sides call the same server. Requests have to agree in method, path, headers of
// access and body; the body is decoded into the SDK's own types too, and nothing of it
// may get lost there. Answers and errors that the SDK's types marshal have to mean the
// same to both sides.
//
// A new version of an SDK that fails here shows what changed in an API.
package sdktest
