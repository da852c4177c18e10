import { actionTools, proxyTools, type ToolIntegration, undescribedMethods } from './proxy-tools.ts'
import type { ServerTool, ToolAnnotations } from './tool.ts'
import { findUnknownNames, matchesFilter, type ToolServerFilter } from './tool-filter.ts'
import { isShortened, numberedName, toolName, toolTitle } from './tool-name.ts'
import { plainDescription } from './tool-schema.ts'
import { type UnifiedToolMethod, unifiedTools } from './unified-tools.ts'
import type { ToolDraft } from './unnamed-tool.ts'

/** What the tools of a tool server are derived from. */
export interface ToolDerivation {
  /** By name. */
  readonly integrations: readonly ToolIntegration[]
  readonly unified: readonly UnifiedToolMethod[]
  readonly filter: ToolServerFilter
  readonly isReadOnly: boolean
  /** Names begin with the integration's, because the server has, or may get, several. */
  readonly isPrefixed: boolean
}

/** Something about the tools that the owner of the server should know. */
export interface ToolWarning {
  readonly code:
    | 'no_description'
    | 'name_collision'
    | 'name_shortened'
    | 'too_many_tools'
    | 'unknown_name'
    | 'account_unusable'
    | 'no_accounts'
    | 'accounts_left_out'
  /** A tool or method; empty: the server. */
  readonly tool: string
  readonly message: string
}

/** The tools of a tool server. */
export interface DerivedTools {
  /** Unified tools first, then methods, then actions; by resource and method. The same for the same input, byte by byte. */
  readonly tools: readonly ServerTool[]
  /** Names of the tools that the server has not because it is read-only. */
  readonly withheld: ReadonlySet<string>
  readonly warnings: readonly ToolWarning[]
}

const UNDESCRIBED_SHOWN_MAX = 10

/** Derives the tools of a tool server. A method without a description is none. */
export function deriveTools({ integrations, unified, filter, isReadOnly, isPrefixed }: ToolDerivation): DerivedTools {
  const drafts = [
    ...unifiedTools(unified),
    ...integrations.flatMap((each) => proxyTools(each, isPrefixed ? each.integrationName : undefined)),
    ...integrations.flatMap((each) => actionTools(each, isPrefixed ? each.integrationName : undefined)),
  ]
  const { names, warnings } = decideNames(drafts)
  const all = drafts.map((draft, at) => toTool(draft, names[at] ?? ''))
  const matching = all.filter((tool) => matchesFilter(tool, filter))
  const tools = isReadOnly ? matching.filter(({ target }) => !target.isWrite) : matching
  const shown = new Set(tools.map(({ name }) => name))
  const withheld = new Set(matching.filter(({ name }) => !shown.has(name)).map(({ name }) => name))
  return {
    tools,
    withheld,
    warnings: [
      ...findUnknownNames(filter, all).map((unknown) => ({ code: 'unknown_name', ...unknown }) as const),
      ...warnings.filter(({ tool }) => shown.has(tool)),
      ...integrations.flatMap(undescribedWarnings),
    ],
  }
}

function undescribedWarnings(integration: ToolIntegration): readonly ToolWarning[] {
  return undescribedMethods(integration)
    .slice(0, UNDESCRIBED_SHOWN_MAX)
    .map((tool) => ({
      code: 'no_description',
      tool,
      message: `the definition of ${integration.integrationName} does not describe ${tool}, so it is no tool`,
    }))
}

/** One name for each draft: where singular names meet, the plural; where those meet too, a number. */
function decideNames(drafts: readonly ToolDraft[]): {
  readonly names: readonly string[]
  readonly warnings: readonly ToolWarning[]
} {
  const first = drafts.map(({ name }) => toolName(name))
  const counts = Map.groupBy(first, (name) => name)
  const taken = new Set<string>()
  const warnings: ToolWarning[] = []
  const names = drafts.map((draft, at) => {
    const wanted = first[at] ?? ''
    const isShared = (counts.get(wanted)?.length ?? 0) > 1
    const name = free(isShared ? toolName(draft.name, true) : wanted, taken)
    taken.add(name)
    if (isShared)
      warnings.push({ code: 'name_collision', tool: name, message: `${wanted} would be the name of several tools` })
    if (isShortened(draft.name))
      warnings.push({ code: 'name_shortened', tool: name, message: 'its whole name is longer than 48 characters' })
    return name
  })
  return { names, warnings }
}

function free(name: string, taken: ReadonlySet<string>): string {
  let candidate = name
  for (let number = 2; taken.has(candidate); number += 1) candidate = numberedName(name, number)
  return candidate
}

function toTool(draft: ToolDraft, name: string): ServerTool {
  const { input, target, note, outputSchema } = draft
  const title = toolTitle(draft.name)
  const description = plainDescription(draft.description)
  return {
    name,
    title,
    description: note === undefined ? description : `${description} ${note}`,
    inputSchema: input.schema,
    ...(outputSchema === undefined ? {} : { outputSchema }),
    annotations: annotationsOf(draft, title),
    source: draft.source,
    kind: draft.kind,
    tags: draft.tags,
    target: { ...target, parameters: input.parameters, controls: input.controls },
  }
}

const IDEMPOTENT_VERBS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'DELETE'])

/** What HTTP says about the method: a creation adds, everything else that writes may overwrite or delete. */
function annotationsOf({ target: { isWrite, method }, verb }: ToolDraft, title: string): ToolAnnotations {
  return {
    title,
    readOnlyHint: !isWrite,
    destructiveHint: isWrite && method !== 'create',
    idempotentHint: !isWrite || IDEMPOTENT_VERBS.has(verb),
    openWorldHint: true,
  }
}
