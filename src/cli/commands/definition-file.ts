import { readFileSync } from 'node:fs'
import { basename, extname } from 'node:path'
import { findShippedDefinition, SHIPPED_NAMES } from '../../engine/catalog/index.ts'
import { suggest, type Violation } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject, parseJson } from '../../foundation/json/index.ts'

/** A definition read from a file or from the catalog. */
export interface DefinitionFile {
  readonly name: string
  /** The definition contains its name; else the name is that of the file. */
  readonly hasName: boolean
  readonly category: string
  readonly config: JsonObject
}

/** A file cannot be read or parsed; the message names the file and the problem. */
export class FileError extends Error {}

/**
 * Reads the definition that a command-line argument names: a file, or a shipped definition.
 *
 * A file contains `{name, category?, config}`, like the request that creates an integration, or a config alone, which gets
 * the name of the file.
 *
 * @throws FileError
 */
export function readDefinition(argument: string): DefinitionFile {
  const shipped = findShippedDefinition(argument)
  if (shipped !== undefined) return { ...shipped, hasName: true }
  if (/^[a-z0-9_-]+$/.test(argument))
    throw new FileError(`there is no shipped definition ${argument}${suggest(argument, SHIPPED_NAMES)}`)
  const content = readJsonFile(argument)
  const { name, category, config } = content
  if (isJsonObject(config) && typeof name === 'string')
    return { name, hasName: true, category: typeof category === 'string' ? category : '', config }
  return { name: basename(argument, extname(argument)), hasName: false, category: '', config: content }
}

/** Pattern of the contract for the name of an integration. */
const NAME = /^[a-z0-9_-]{1,128}$/

/** A finding when the text cannot be the name of an integration. */
export function findInvalidName(name: string): readonly Violation[] {
  if (NAME.test(name)) return []
  return [{ field: 'name', description: 'must hold 1 to 128 of a-z, 0-9, "_" and "-"', rule: 'pattern' }]
}

/** Reads a JSON object from a file. @throws FileError with line and column of a syntax error */
export function readJsonFile(file: string): JsonObject {
  const text = readText(file)
  const content = parseJsonFile(file, text)
  if (!isJsonObject(content)) throw new FileError(`${file} must hold a JSON object`)
  return content
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new FileError(code === 'ENOENT' ? `there is no file ${file}` : `${file} cannot be read: ${message}`)
  }
}

function parseJsonFile(file: string, text: string): Json {
  try {
    return parseJson(text)
  } catch (error) {
    const { cause = error } = error as Error
    const message = cause instanceof Error ? cause.message : String(cause)
    throw new FileError(`${file} is not JSON: ${message}${lineAndColumn(text, message)}`)
  }
}

/** V8 reports some syntax errors by character position only. */
function lineAndColumn(text: string, message: string): string {
  const position = /at position (\d+)/.exec(message)?.[1]
  if (position === undefined || message.includes('line ')) return ''
  const before = text.slice(0, Number(position)).split('\n')
  return ` (line ${before.length} column ${(before.at(-1)?.length ?? 0) + 1})`
}
