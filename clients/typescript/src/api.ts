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
            /** @description branch names a session of its own that began as a copy of this one, such as a sub-agent's. */
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
            /** @description the whole history, or the messages after the prefix */
            messages: Record<string, never>[];
            /** @description the last call, if its provider refused it as too long */
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
            /** @description frozen is the number of first messages that are returned unchanged, also if the session has others in their place; only with form parts. */
            frozen?: number | null;
            /** @description forked_from is the place where a branch begins, found by another worker; agents leave it out. */
            forked_from?: {
                session: string;
                turn?: number | null;
            } | null;
            /** @description The provider's count for the last call, in its shape, with the view of the answer that the call was made with. */
            usage?: Record<string, never> | null;
        };
        /**
         * sync-response
         * @description SyncResponse has the messages to send.
         */
        SyncResponse: {
            /** @description version of the contract */
            v: number;
            /** @description all: the prefix is not known here, send the whole history */
            need?: string | null;
            /** @description budget_exceeded: a call with the sent messages does not fit */
            code?: string | null;
            /** @description false beside it: the same call would be refused again */
            retry?: boolean | null;
            /** @description session of the history, if not the request's: a branch */
            session?: string | null;
            /** @description its name, for a request that means it */
            branch?: string | null;
            /** @description of the session, at the beginning of the history */
            turns: number;
            /** @description messages that the session had before */
            known: number;
            /** @description messages of the history; with hash the prefix of a later request */
            count: number;
            /** @description of the session with this history */
            hash: string;
            /** @description false: the history is not published, and the answer follows from the request alone */
            recorded: boolean;
            /** @description names the sent messages, for usage and refused; "" if it would be the refused view */
            view: string;
            generation: number;
            /** @description the last turn that the answer rests on */
            through: {
                seq: number;
                turn: number;
            };
            /** @description false: the history is sent unchanged */
            changed: boolean;
            /** @description of a call with the sent messages */
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
                    /** @description correction is the difference between the provider's count of the last call and our estimates above; negative if they were too high. */
                    correction?: number | null;
                };
                generation: number;
            };
            /** @description tried after a refusal, if the sent messages do not fit */
            stages?: {
                name: string;
                tokens_before: number;
                tokens_after: number;
                edits: number;
                /** @description missing are files whose content the stage hid and that later calls use; restored of them were restored. */
                missing?: number | null;
                restored?: number | null;
                /** @description lines_missing are lines that a summary removed from view, with identifiers that the agent used since it was requested; lines_kept of them are kept in its message. */
                lines_missing?: number | null;
                lines_kept?: number | null;
            }[] | null;
            warnings: {
                code: string;
                message: string;
                hint: string;
            }[];
            parts?: {
                /** @description these messages of the caller, unchanged */
                keep?: [
                    number,
                    number
                ] | null;
                /** @description these are not sent */
                drop?: [
                    number,
                    number
                ] | null;
                /** @description this message, with message's content in its place */
                edit?: number | null;
                /** @description made by compactd */
                message?: unknown;
                /** @description stands_for are the messages that the message replaces; absent if it is added. */
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
         * @description ServiceError is the payload of a refusal. The headers Nats-Service-Error-Code and Nats-Service-Error have code and text too.
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
