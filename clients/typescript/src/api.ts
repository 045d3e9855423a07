// Written by scripts/types.mjs from the OpenAPI document of compactd. Do not edit.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * sync-request
         * @description SyncRequest is the history of an agent, with the prompt of its next call at the end.
         */
        SyncRequest: {
            /** @description version of the contract */
            v?: number | null;
            /** @description branch names a session of its own that began as a copy of this one, such as that of a sub-agent. */
            branch?: string | null;
            /** @description of the next call; absent = unchanged */
            model?: {
                provider?: string | null;
                name?: string | null;
                /** @description max_output_tokens is the output reserve, 0 when the agent sets none. */
                max_output_tokens?: number | null;
                /** @description context_window overrides the table of windows, in tokens; 0 uses the table. */
                context_window?: number | null;
            } | null;
            /**
             * @description "" = that of the session
             * @enum {string|null}
             */
            format?: "openai" | "anthropic" | "neurolink" | "openai-responses" | "gemini" | "bedrock" | "ai-sdk" | "" | null;
            /** @description absent = unchanged */
            system?: string | unknown[] | null;
            /** @description absent = unchanged */
            tools?: unknown[] | null;
            /** @description absent = unchanged */
            policy?: Record<string, never> | null;
            /** @description messages that both sides have; absent for none */
            prefix?: {
                count?: number | null;
                hash: string;
            } | null;
            /** @description the whole history, or what is behind the prefix */
            messages: Record<string, never>[];
            /** @description the last call, where its provider refused it as too long */
            refused?: (({
                /** @description that the call was made with; absent is the newest */
                view?: string | null;
                /** @description HTTP status; 0 is none */
                status?: ((number | unknown | unknown) | null) | unknown | unknown;
                error?: string | Record<string, never> | unknown[] | null;
            } | {
                error: string | Record<string, never> | unknown[];
            } | {
                status: number;
            }) | null) | {
                error: string | Record<string, never> | unknown[];
            } | {
                status: number;
            };
            /**
             * @description absent: auto
             * @enum {string|null}
             */
            on_diverge?: "" | "auto" | "replace" | "branch" | "refuse" | null;
            /** @description the most to wait for the decision, in milliseconds; absent is 500 */
            wait_ms?: number | null;
            /** @description nothing is published */
            dry_run?: boolean | null;
            /**
             * @description absent: parts
             * @enum {string|null}
             */
            form?: "" | "parts" | "messages" | null;
            /** @description frozen is how many of the first messages come back as they are, whatever the session has in their place; with form parts alone. */
            frozen?: number | null;
            /** @description forked_from is where a branch begins that another worker found; agents leave it out. */
            forked_from?: {
                session: string;
                turn?: number | null;
            } | null;
            /** @description The provider's count for the last call, in its shape, with the view of the answer that the call was made with. */
            usage?: Record<string, never> | null;
        };
        /**
         * sync-response
         * @description SyncResponse is what of the history to send.
         */
        SyncResponse: {
            /** @description version of the contract */
            v: number;
            /** @description all: the prefix is not known here, send the whole history */
            need?: string | null;
            /** @description budget_exceeded: a call with what is sent does not fit */
            code?: string | null;
            /** @description false beside it: the same call would be refused again */
            retry?: boolean | null;
            /** @description that the history belongs to, where it is not that of the request: a branch */
            session?: string | null;
            /** @description its name, for a request that means it */
            branch?: string | null;
            /** @description of the session, that the history begins with */
            turns: number;
            /** @description messages that the session had before */
            known: number;
            /** @description messages of the history; with hash the prefix of a later request */
            count: number;
            /** @description of the session with this history */
            hash: string;
            /** @description false: nothing of the history is published, what is sent follows from the request alone */
            recorded: boolean;
            /** @description names what is sent, for usage and refused; "" where it would be the one that was refused */
            view: string;
            generation: number;
            /** @description the last turn that the answer rests on */
            through: {
                seq: number;
                turn: number;
            };
            /** @description false: the history goes out as it is */
            changed: boolean;
            /** @description of a call with what is sent */
            budget: {
                level: string;
                context_window: number;
                output_reserve: number;
                available_input_tokens: number;
                estimated_input_tokens: number;
                /** @description estimated over available, in parts per million */
                usage_ppm: number;
                within_budget: boolean;
                should_compact: boolean;
                /** @description of the way to the trigger */
                percent_left?: number | null;
                /** @description input from which the history is compacted */
                trigger_tokens?: number | null;
                /** @description input that a compaction aims for */
                target_tokens?: number | null;
                /** @description input from which a compaction truncates at once */
                limit_tokens?: number | null;
                /** @description Breakdown lists the parts of the estimated input, in tokens. */
                breakdown: {
                    system_prompt: number;
                    history: number;
                    current_prompt: number;
                    tool_definitions: number;
                    file_attachments: number;
                    /** @description correction is what the provider's own count of the last call adds to our estimates above; negative when they were too high. */
                    correction?: number | null;
                };
                generation: number;
            };
            /** @description that were tried after a refusal, where what is sent does not fit */
            stages?: {
                name: string;
                tokens_before: number;
                tokens_after: number;
                edits: number;
                /** @description missing are files that calls behind what the stage hid use, and whose content it hid; of them so many are restored. */
                missing?: number | null;
                restored?: number | null;
                /** @description lines_missing are lines that a summary took out of view, with identifiers that the agent used since it was requested; of them so many are kept in its message: LinesKept. */
                lines_missing?: number | null;
                lines_kept?: number | null;
            }[] | null;
            warnings: {
                code: string;
                message: string;
                hint: string;
            }[];
            parts?: {
                /** @description these messages of the caller, as they are */
                keep?: [
                    number,
                    number
                ] | null;
                /** @description these are not sent */
                drop?: [
                    number,
                    number
                ] | null;
                /** @description this message, with what message has in its place */
                edit?: number | null;
                /** @description made by compactd */
                message?: unknown;
                /** @description stands_for are messages in whose place the message is sent, none where it is added. */
                stands_for?: [
                    number,
                    number
                ] | null;
            }[] | null;
            /** @description in place of parts, for form messages */
            messages?: unknown[] | null;
        };
        /**
         * error
         * @description ServiceError is the payload of a refusal. Code and text are in the headers Nats-Service-Error-Code and Nats-Service-Error too.
         */
        WorkerError: {
            /** @description version of the contract */
            v: number;
            code: string;
            message: string;
            hint?: string | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type SyncRequest = components['schemas']['SyncRequest'];
export type SyncResponse = components['schemas']['SyncResponse'];
export type WorkerError = components['schemas']['WorkerError'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
