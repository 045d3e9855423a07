package extract

import "strings"

// idleWords say nothing about what a sentence is about.
var idleWords = func() map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(`the and for with that this from are was were has have had been will would can could should must may might not don never always only any all
		into onto over under when while then than them they their there these those its his her our your you also but who what which how why does did done being such per via out off too very just still yet
		already explicitly given granted obtained received previously clearly finally now once again please make sure without ensure cannot unless before after about because so as is it in on of to at by an or if be do we he she us me my no even one ones more most
		user users message turn turns session asked wants wanted said says decided decision rule rules constraint instruction request requested
		der die das den dem ein eine einen und oder mit von für auf aus bei nach vor zum zur ist sind war wird werden hat haben nicht kein keine nie niemals immer nur muss durch
		les des une est sont pour avec dans sur par pas que qui ont été los las una con por para del que como sin nunca siempre`) {
		out[w] = true
	}
	return out
}()
