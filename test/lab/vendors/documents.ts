import { existsSync, globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Json, JsonObject } from '../../../src/foundation/json/index.ts'

/** Where the documents of a vendor are: files of an npm package, or of a repository that is checked out below `--documents`. */
export interface VendorSource {
  readonly package?: string
  /** `<owner>/<name>` on GitHub; it is looked for in a folder of that path. */
  readonly repository?: string
  /** Commit of the repository for which the exceptions hold. */
  readonly commit?: string
  /** Patterns of the files: OpenAPI (JSON, YAML), or one GraphQL schema. */
  readonly files: readonly string[]
  /** Path before the paths of the document, where its `servers` do not say it. */
  readonly base_path?: string
  /** A body that the document shows as a list of records may be one of them. */
  readonly lists_take_one_record?: boolean
  /** Who wrote the document, where it is not the vendor. */
  readonly note?: string
}

/** A document as its vendor wrote it: OpenAPI as JSON, or the text of a GraphQL schema. */
export type VendorDocument =
  | { readonly kind: 'openapi'; readonly root: JsonObject }
  | { readonly kind: 'graphql'; readonly text: string }

const PACKAGES = join(import.meta.dirname, 'node_modules')
const requireHere = createRequire(import.meta.url)

/** The documents of a vendor; `undefined` where its repository is not there. */
export function readDocuments(source: VendorSource, directory: string | undefined): VendorDocument[] | undefined {
  const folder = folderOf(source, directory)
  if (folder === undefined || !existsSync(folder)) return undefined
  const paths = source.files.flatMap((pattern) => globSync(pattern, { cwd: folder })).sort()
  if (paths.length === 0) throw new Error(`${folder} has none of ${source.files.join(', ')}`)
  return paths.map((path) => readDocument(join(folder, path)))
}

/** Name and version of what is compared, for people. */
export function documentName(source: VendorSource): string {
  if (source.package === undefined) return `${source.repository} ${source.commit?.slice(0, 12)}`
  const manifest = JSON.parse(readFileSync(join(PACKAGES, source.package, 'package.json'), 'utf8')) as JsonObject
  return `${source.package} ${manifest.version}`
}

function folderOf(source: VendorSource, directory: string | undefined): string | undefined {
  if (source.package !== undefined) return join(PACKAGES, source.package)
  return directory === undefined ? undefined : join(directory, source.repository ?? '')
}

function readDocument(path: string): VendorDocument {
  const text = readFileSync(path, 'utf8')
  if (path.endsWith('.graphql')) return { kind: 'graphql', text }
  return { kind: 'openapi', root: (path.endsWith('.json') ? JSON.parse(text) : parseYaml(text)) as JsonObject }
}

function parseYaml(text: string): Json {
  const { parse } = requireHere('yaml') as { parse(text: string, options: JsonObject): Json }
  return parse(text, { maxAliasCount: -1, logLevel: 'silent' })
}
