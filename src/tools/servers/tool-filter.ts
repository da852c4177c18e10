import { suggest } from '../../foundation/base/index.ts'
import type { ServerTool, ToolKind, ToolSource } from './tool.ts'

/** Which tools a tool server has; an empty list does not restrict, the lists combine with and. */
export interface ToolServerFilter {
  readonly methods: readonly ToolKind[]
  /** `contacts`, of a unified model `crm/contacts`. */
  readonly resources: readonly string[]
  readonly tags: readonly string[]
  readonly includeNames: readonly string[]
  readonly excludeNames: readonly string[]
  readonly sources: readonly ToolSource[]
}

/** A name of a filter that no tool has. */
export interface UnknownName {
  /** The name when it is that of a tool, else empty. */
  readonly tool: string
  readonly message: string
}

/** The filter that every tool passes. */
export const ALL_TOOLS: ToolServerFilter = {
  methods: [],
  resources: [],
  tags: [],
  includeNames: [],
  excludeNames: [],
  sources: [],
}

/** Whether a tool server has the tool. */
export function matchesFilter(tool: ServerTool, filter: ToolServerFilter): boolean {
  const { methods, resources, tags, includeNames, excludeNames, sources } = filter
  return (
    permits(methods, tool.kind) &&
    permits(sources, tool.source) &&
    permits(resources, resourceOf(tool)) &&
    (tags.length === 0 || tool.tags.some((tag) => tags.includes(tag))) &&
    permits(includeNames, tool.name) &&
    !excludeNames.includes(tool.name)
  )
}

/** The names of a filter that no tool has, each with the one that is probably meant. */
export function findUnknownNames(
  { resources, tags, includeNames, excludeNames }: ToolServerFilter,
  tools: readonly ServerTool[],
): readonly UnknownName[] {
  const names = tools.map(({ name }) => name)
  return [
    ...unknownOf('resources', resources, tools.map(resourceOf)),
    ...unknownOf(
      'tags',
      tags,
      tools.flatMap((tool) => tool.tags),
    ),
    ...unknownOf('include_names', includeNames, names),
    ...unknownOf('exclude_names', excludeNames, names),
  ]
}

function unknownOf(list: string, given: readonly string[], existing: readonly string[]): readonly UnknownName[] {
  const known = new Set(existing)
  return given
    .filter((name) => !known.has(name))
    .map((name) => ({
      tool: list.endsWith('_names') ? name : '',
      message: `the filter's ${list} name ${name}, which no tool has${suggest(name, known)}`,
    }))
}

function resourceOf({ target: { model, resource } }: ServerTool): string {
  return model === undefined ? resource : `${model}/${resource}`
}

function permits<Value>(allowed: readonly Value[], value: Value): boolean {
  return allowed.length === 0 || allowed.includes(value)
}
