export type { SyncResponse } from "./api.js";
export { Conversation, type CallOptions, type Codec, type Fitted } from "./conversation.js";
export type { Options } from "./core.js";
export { compactd } from "./fetch.js";
export type { Format, Model } from "./history.js";
export { withSession } from "./session.js";
export type { Problem } from "./worker.js";
