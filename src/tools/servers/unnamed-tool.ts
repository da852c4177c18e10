import type { ServerTool, ToolKind, ToolSource, ToolTarget } from './tool.ts'
import type { ToolInput } from './tool-input.ts'
import type { ToolNameParts } from './tool-name.ts'

/** A tool before its name is decided, which depends on the names of the others. */
export interface ToolDraft extends Pick<ServerTool, 'outputSchema'> {
  readonly name: ToolNameParts
  readonly description: string
  /** A sentence that follows the description, whatever its length. */
  readonly note: string | undefined
  readonly input: ToolInput
  readonly source: ToolSource
  readonly kind: ToolKind
  readonly tags: readonly string[]
  /** HTTP method, upper case. */
  readonly verb: string
  readonly target: Omit<ToolTarget, 'parameters' | 'controls'>
}
