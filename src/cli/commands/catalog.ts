import { findShippedDefinition, labelOf, SHIPPED_NAMES } from '../../engine/catalog/index.ts'
import { listCredentials } from '../../engine/formats/index.ts'
import { isJsonObject } from '../../foundation/json/index.ts'
import type { RunCommand } from './command.ts'
import { printLine } from './output.ts'

/** Lists the definitions that `patchbay install NAME` knows, with the credentials by which their accounts connect. */
export const runCatalog: RunCommand = async () => {
  const width = Math.max(...SHIPPED_NAMES.map((name) => name.length))
  for (const name of SHIPPED_NAMES) {
    const definition = findShippedDefinition(name)
    if (definition === undefined) continue
    const { resources, credentials } = definition.config
    const keys = listCredentials(credentials).map(({ key }) => key)
    const names = isJsonObject(resources) ? Object.keys(resources) : []
    printLine(`${name.padEnd(width)}  ${labelOf(definition)} (${keys.join(', ')}): ${names.join(', ')}`)
  }
  return 0
}
