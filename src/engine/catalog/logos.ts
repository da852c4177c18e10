import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = join(import.meta.dirname, 'logos')
const EXTENSION = '.svg'

const NAMES: ReadonlySet<string> = new Set(
  readdirSync(FOLDER)
    .filter((file) => file.endsWith(EXTENSION))
    .map((file) => file.slice(0, -EXTENSION.length)),
)
const logos = new Map<string, Buffer>()

/** Whether the shipped definition of that name has a logo. */
export function hasShippedLogo(name: string): boolean {
  return NAMES.has(name)
}

/** The logo of the shipped definition of that name, an SVG document; `undefined` when it has none. Read once. */
export function findShippedLogo(name: string): Buffer | undefined {
  if (!hasShippedLogo(name)) return undefined
  const logo = logos.get(name) ?? readFileSync(join(FOLDER, name + EXTENSION))
  logos.set(name, logo)
  return logo
}
