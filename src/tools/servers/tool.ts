import type { JsonObject } from '../../foundation/json/index.ts'

/** A tool as a client of any transport sees it. */
export interface ToolDescription {
  /** At most `TOOL_NAME_LENGTH_MAX` characters of `A-Za-z0-9_`; unique in its list. */
  readonly name: string
  readonly title: string
  readonly description: string
  /** JSON Schema of the arguments: an object, without `$ref`. */
  readonly inputSchema: JsonObject
  /** JSON Schema of `ToolResult.structured`; absent where it is not known. */
  readonly outputSchema?: JsonObject | undefined
  readonly annotations: ToolAnnotations
}

/** Hints for clients, named as in the Model Context Protocol. */
export interface ToolAnnotations {
  readonly title: string
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  /** Reaches third parties. */
  readonly openWorldHint: boolean
}

/** Where a tool comes from. */
export type ToolSource = 'proxy' | 'unified' | 'actions'

/** Kind of the method behind a tool: list and get; create, update and delete; anything else. */
export type ToolKind = 'read' | 'write' | 'custom'

/** A tool of a tool server, with what a call of it does. */
export interface ServerTool extends ToolDescription {
  readonly source: ToolSource
  readonly kind: ToolKind
  /** For the filter and the search. */
  readonly tags: readonly string[]
  readonly target: ToolTarget
}

/** What a call of a tool does. */
export interface ToolTarget {
  /** The accounts that it can be called for: with more than one, an argument chooses. */
  readonly accountIds: readonly string[]
  /** Of a unified tool: absent for proxy and actions. */
  readonly model?: string | undefined
  /** `_` for an action. */
  readonly resource: string
  readonly method: string
  /** The result is a page of records. */
  readonly isList: boolean
  /** Changes something at the third party. */
  readonly isWrite: boolean
  /** Where each argument of the third party goes. */
  readonly parameters: Readonly<Record<string, ToolParameter>>
  /** The arguments that the tool server itself reads, by what they do; those that the tool has. */
  readonly controls: Readonly<Partial<Record<ToolControl, string>>>
}

/** What an argument does that no third party gets: page size, cursor, projection, dry run, choice of the account. */
export type ToolControl = 'limit' | 'cursor' | 'fields' | 'dry_run' | 'account'

/** The place of one argument in a call: a part of it, and the name there; without a name it is the whole part. */
export interface ToolParameter {
  readonly part: 'id' | 'query' | 'body' | 'args'
  readonly name?: string | undefined
}

/** The type of an error, which a model can act on. */
export type ToolErrorType =
  | 'validation'
  | 'upstream'
  | 'rate_limited'
  | 'needs_reauth'
  | 'forbidden'
  | 'sandbox'
  | 'timeout'
  | 'cancelled'
  | 'internal'

/** The outcome of a call, ready for any transport. */
export interface ToolResult {
  /** JSON; of an error `{error: {type, status, message, fields?, retry_after?, connect_url?}}`. */
  readonly structured: JsonObject
  /** The same for a model that reads text: JSON, or for an error a sentence that says what to change. */
  readonly text: string
  readonly isError: boolean
  /** Records or texts were cut off at the limit of bytes. */
  readonly truncated: boolean
}
