import { globSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const FOLDER = join(import.meta.dirname, 'node_modules')
const DECLARATION =
  /^[ \t]*(?:export |declare )*(?:interface|type) (\w+)(?:<[^>{]*>)?(?: extends [^{]+| = (?:\w+(?:\.\w+)* & )*)?\s*\{/gm
const PROPERTY = /^\s*(?:readonly )?['"]?(\w+)['"]?\??:/

/** The property names of the object types that a package declares, by `<Type>` and by `<category>/<Type>`, the category being the folder above that of the file; of equal names all together. */
export function readTypes(packageName: string, pattern: string): ReadonlyMap<string, ReadonlySet<string>> {
  const types = new Map<string, Set<string>>()
  for (const path of globSync(`${packageName}/${pattern}`, { cwd: FOLDER })) {
    const text = readFileSync(join(FOLDER, path), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '')
    const category = relative(packageName, path).split('/').at(-3) ?? ''
    for (const match of text.matchAll(DECLARATION)) {
      const properties = propertiesOf(text.slice(match.index + match[0].length))
      for (const name of [match[1] ?? '', `${category}/${match[1]}`])
        types.set(name, new Set([...(types.get(name) ?? []), ...properties]))
    }
  }
  return types
}

/** The names before the colons of an object type, without those of types inside. */
function propertiesOf(body: string): string[] {
  const names: string[] = []
  let depth = 0
  for (const line of body.split('\n')) {
    if (depth === 0) {
      const [, name] = PROPERTY.exec(line) ?? []
      if (name !== undefined) names.push(name)
    }
    for (const character of line) {
      if (character === '{') depth++
      if (character === '}') depth--
    }
    if (depth < 0) return names
  }
  return names
}
