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
  const { model, resource } = tool.target
  return (
    permits(methods, tool.kind) &&
    permits(sources, tool.source) &&
    permits(resources, model === undefined ? resource : `${model}/${resource}`) &&
    (tags.length === 0 || tool.tags.some((tag) => tags.includes(tag))) &&
    permits(includeNames, tool.name) &&
    !excludeNames.includes(tool.name)
  )
}

function permits<Value>(allowed: readonly Value[], value: Value): boolean {
  return allowed.length === 0 || allowed.includes(value)
}
