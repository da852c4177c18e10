import { isJsonObject } from '../base/index.ts'
import { findShippedDefinition, labelOf, SHIPPED_NAMES } from '../catalog/index.ts'
import type { RunCommand } from './command.ts'

/** Lists the definitions that `patchbay install NAME` knows. */
export const runCatalog: RunCommand = async () => {
  const width = Math.max(...SHIPPED_NAMES.map((name) => name.length))
  for (const name of SHIPPED_NAMES) {
    const definition = findShippedDefinition(name)
    if (definition === undefined) continue
    const resources = isJsonObject(definition.config.resources) ? Object.keys(definition.config.resources) : []
    process.stdout.write(`${name.padEnd(width)}  ${labelOf(definition)}: ${resources.join(', ')}\n`)
  }
  return 0
}
