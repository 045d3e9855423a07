import { weightOf, type History, type Model, type Piece } from "./history.js";
import { elements, members, object, parse } from "./json.js";

/** The facts of a message that decide where a history may be cut. */
interface Outline {
  prompt: boolean; // the user wrote it
  reasoning: boolean; // it belongs to the next one
  calls: string[];
  results: string[];
}

/** Whether a history is of a dialect that can be cut. */
export const isCuttable = ({ format }: History) => ["openai", "openai-responses", "anthropic", "ai-sdk"].includes(format);

/**
 * The instructions, the first prompt, and the newest turns. Where these exceed most bytes, the oldest
 * are left out until half of the room is free: the calls that follow append to the same messages, and
 * the provider's cache holds. Where no whole turn fits, it goes on at a call.
 */
export function cut(h: History, pieces: Piece[], most: number): Piece[] {
  const outlines = pieces.map((p) => outline(h.format, JSON.parse(p.text)));
  const head = outlines.findIndex((o) => o.prompt) + 1;
  const { prompts, all } = starts(outlines, head);
  const size = (from: number, to: number) => upTo[to]! - upTo[from]!;
  const upTo = [0]; // bytes of the first n pieces
  for (const { text } of pieces) upTo.push(upTo.at(-1)! + weightOf(text) + 1);
  const room = most - h.size - upTo[head]!;
  let from = head;
  for (let end = head + 1; end <= pieces.length; end++) {
    if (size(from, end) <= room) continue; // a longer history begins with the cuts of a shorter one
    const behind = (of: number[]) => of.filter((i) => i > from && i < end);
    const fitting = (of: number[]) => behind(of).find((i) => size(i, end) <= room / 2) ?? behind(of).find((i) => size(i, end) <= room);
    from = fitting(prompts) ?? fitting(all) ?? behind(all).at(-1) ?? from;
  }
  return bound(h, [...pieces.slice(0, head), ...pieces.slice(from)]);
}

/** Where a history may go on behind its head: at prompts, and at all places without an open call. */
function starts(outlines: Outline[], head: number): { prompts: number[]; all: number[] } {
  const open = new Set<string>();
  const prompts: number[] = [];
  const all: number[] = [];
  outlines.forEach((o, i) => {
    if (i >= head && open.size === 0 && o.results.length === 0 && !outlines[i - 1]?.reasoning) {
      all.push(i);
      if (o.prompt) prompts.push(i);
    }
    o.calls.forEach((id) => open.add(id));
    o.results.forEach((id) => open.delete(id));
  });
  return { prompts, all };
}

const list = (value: unknown): any[] => (Array.isArray(value) ? value : []);

function outline(format: History["format"], message: any): Outline {
  const m = message ?? {};
  switch (format) {
    case "openai-responses": {
      const { type = "message", role, call_id: id } = m;
      const isOutput = String(type).endsWith("_output");
      return {
        prompt: type === "message" && role === "user",
        reasoning: type === "reasoning",
        calls: id && !isOutput ? [id] : [],
        results: isOutput ? [id ?? m.id] : [],
      };
    }
    case "anthropic": {
      const blocks = list(m.content);
      const results = blocks.filter((b) => b?.type === "tool_result").map((b) => b.tool_use_id);
      const calls = blocks.filter((b) => b?.type === "tool_use").map((b) => b.id);
      return { prompt: m.role === "user" && results.length === 0, reasoning: false, calls, results };
    }
    case "ai-sdk": {
      const parts = list(m.content);
      const ids = (type: string) => parts.filter((p) => p?.type === type && !p.providerExecuted).map((p) => p.toolCallId);
      const [calls, results] = m.role === "tool" ? [[], ids("tool-result")] : [ids("tool-call"), []];
      return { prompt: m.role === "user", reasoning: false, calls, results };
    }
    default: {
      const calls = list(m.tool_calls).map((c) => c?.id);
      if (m.function_call) calls.push(m.function_call.name);
      const results = m.role === "tool" || m.role === "function" ? [m.tool_call_id ?? m.name] : [];
      return { prompt: m.role === "user", reasoning: false, calls, results };
    }
  }
}

/**
 * Leaves thinking out where the model accepts it with the history alone that it was made under.
 * A model that is not known keeps that of its open tool loop.
 */
function bound(h: History, pieces: Piece[]): Piece[] {
  const binding = bindingOf(h.format, h.model);
  if (binding === "free") return pieces;
  const loop = binding === "binds" ? pieces.length : pieces.findLastIndex((p) => outline(h.format, JSON.parse(p.text)).prompt);
  return pieces.flatMap(({ text, own }, i) => (i < loop ? withoutThinking(text) : [text]).map((text) => ({ text, own })));
}

/** The last version of each family of Claude whose thinking goes with any history; see internal/events/traits. */
const unbound: Record<string, number> = { fable: 5, mythos: 5, opus: 5, sonnet: 5, haiku: 4.05, claude: 3.99, instant: 1.99 };

function bindingOf(format: History["format"], model: Model): "free" | "may" | "binds" {
  const name = model.name?.toLowerCase() ?? "";
  const isAnthropic = format === "anthropic" || /anthropic|bedrock/.test(model.provider ?? "");
  if (!/claude|fable|mythos|opus|sonnet|haiku/.test(name)) return isAnthropic ? "may" : "free";
  if (/mythos.?preview/.test(name)) return "free";
  const [, family, major, minor = "0"] = /([a-z]+)[^a-z0-9]+v?(\d\d?)(?![a-z0-9])(?:[^a-z0-9]+v?(\d\d?)(?![a-z0-9]))?/.exec(name.replace(/^.*?claude/, "claude")) ?? [];
  const last = unbound[family ?? ""];
  if (last === undefined) return "may";
  return Number(major) + Number(minor) / 100 > last ? "binds" : "free";
}

/** A message without thinking; none where it has nothing else. */
function withoutThinking(message: string): string[] {
  const all = members(message);
  if (!all || !/thinking|reasoning/.test(message)) return [message];
  const details = all.delete("reasoning_details");
  const content = all.get("content");
  if (!content?.startsWith("[")) return details ? [object(all)] : [message];
  const blocks = elements(content);
  const rest = blocks.filter((b) => !/^((redacted_)?thinking|reasoning)$/.test(parse(b)?.type));
  if (rest.length === blocks.length && !details) return [message];
  const kept = rest.filter((b) => parse(b)?.type !== "text" || parse(b).text?.trim());
  return kept.length ? [object(all.set("content", `[${kept.join()}]`))] : [];
}
