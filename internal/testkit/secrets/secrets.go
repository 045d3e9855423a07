package secrets

import "strings"

// Random is text of an alphabet that is the same in every run, and no secret of
// any user. Secrets are put together here, so that no scanner finds one in this
// file.
func Random(seed uint64, alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		seed = seed*6364136223846793005 + 1442695040888963407
		b[i] = alphabet[(seed>>33)%uint64(len(alphabet))]
	}
	return string(b)
}

// Alphabets.
const (
	Hex   = "0123456789abcdef"
	Alnum = upper + lower + digits

	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lower  = "abcdefghijklmnopqrstuvwxyz"
	digits = "0123456789"
)

// Secret is a value of a kind, and a text that holds it.
type Secret struct{ Kind, Text, Value string }

// All has a secret of each kind.
func All() []Secret {
	pem := func(kind string) string {
		var b strings.Builder
		b.WriteString("-----BEGIN " + kind + "-----\n")
		for i := range 24 {
			b.WriteString(Random(uint64(i)+77, Alnum+"+/", 64) + "\n")
		}
		return b.String() + "-----END " + kind + "-----"
	}
	rsa := pem("RSA PRIVATE " + "KEY")
	key := rsa[strings.Index(rsa, "\n")+1 : strings.LastIndex(rsa, "\n-----END")]
	lines := strings.Split(rsa, "\n")
	var out []Secret
	add := func(kind, before, secret, after string) {
		out = append(out, Secret{kind, before + secret + after, secret})
	}
	add("aws access key", "", "AKIA"+Random(1, upper+"234567", 16), "")
	add("aws secret key", "aws_secret_access_key = ", Random(2, Alnum+"/+", 39)+"Q", "")
	add("github token", "", "ghp_"+Random(3, Alnum, 36), "")
	add("github app token", "", "ghs_"+Random(4, Alnum, 36), "")
	add("gitlab token", "", "glpat-"+Random(5, Alnum, 20), "")
	add("slack bot token", "", "xoxb-"+Random(6, digits, 12)+"-"+Random(7, digits, 12)+"-"+Random(8, Alnum, 24), "")
	add("slack webhook", "https://hooks.slack.com/", "services/T"+Random(9, upper+digits, 8)+"/B"+Random(10, upper+digits, 8)+"/"+Random(11, Alnum, 24), "")
	add("private key", lines[0]+"\n", key, "\n"+lines[len(lines)-1])
	add("private key in JSON", `{"key": "`+lines[0]+`\n`, strings.ReplaceAll(key, "\n", `\n`), `\n`+lines[len(lines)-1]+`"}`)
	add("head of a private key", lines[0]+"\n", strings.Join(lines[1:9], "\n"), "")
	add("tail of a private key", "", strings.Join(lines[12:25], "\n"), "\n"+lines[len(lines)-1])
	add("jwt", "", "eyJ"+Random(12, Alnum, 30)+".eyJ"+Random(13, Alnum, 60)+"."+Random(14, Alnum, 43), "")
	add("openai key", "", "sk-proj-"+Random(15, Alnum, 74)+"T3Blbk"+"FJ"+Random(16, Alnum, 74), "")
	add("anthropic key", "", "sk-ant-api03-"+Random(17, Alnum, 93)+"AA", "")
	add("google key", "", "AIza"+Random(18, Alnum, 35), "")
	add("stripe key", "", "sk_live_"+Random(19, Alnum, 24), "")
	add("npm token", "", "npm_"+Random(20, lower+digits, 36), "")
	add("hugging face token", "", "hf_"+Random(21, lower, 34), "")
	add("sendgrid key", "", "SG."+Random(22, Alnum, 66), "")
	add("api key", "api_key=", Random(23, Alnum, 32), "")
	add("api key in hex", `"api_key": "`, Random(24, Hex, 32), `"`)
	add("api key with a stop word", "API_KEY=", "client-test-"+Random(25, Alnum, 12), "")
	add("api key with a request to stay", "api_key=", Random(26, Alnum, 32), " # gitleaks:"+"allow")
	add("password", "DB_PASSWORD=", "hunter2"+Random(27, lower, 3), "")
	add("password in JSON", `{"password":"`, "tr0ub4dor"+Random(28, lower, 2), `"}`)
	add("password in quoted JSON", `"{\"password\":\"`, "tr0ub4dor"+Random(29, lower, 2), `\"}"`)
	add("password flag", "mysql --password ", "s3cr3t"+Random(30, lower, 5), " -u root")
	add("password in a connection string", "Server=db;User Id=sa;Password=", "Pa55"+Random(31, Alnum, 8), ";Encrypt=yes")
	add("password in a URL", "postgres://app:", "pw"+Random(32, Alnum, 6), "@db.internal:5432/app")
	add("password with @ in a URL", "redis://:", "p@ss"+Random(33, Alnum, 6), "@cache:6379")
	add("azure storage key", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=", Random(34, Alnum, 86)+"==", ";EndpointSuffix=core.windows.net")
	add("bearer token", "Authorization: Bearer ", Random(35, Alnum, 40), "")
	return out
}

// Leak reports whether a text holds a secret or a good part of it.
func Leak(text, secret string) bool {
	for line := range strings.SplitSeq(strings.ReplaceAll(secret, `\n`, "\n"), "\n") {
		if n := min(len(line), 24); strings.Contains(text, line[:n]) || strings.Contains(text, line[len(line)-n:]) {
			return true
		}
	}
	return false
}
