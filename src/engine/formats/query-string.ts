import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'

export const QUERY_ARRAY_FORMATS = ['comma', 'brackets', 'indices', 'repeat'] as const

export type QueryArrayFormat = (typeof QUERY_ARRAY_FORMATS)[number]

/**
 * Serialises parameters as a query string or form body, without a leading `?`.
 *
 * Objects nest in brackets (`filter[state]=open`), in a list under their index, so that their fields stay together; `null`
 * and empty lists are left out, booleans are `true` and `false`. Names keep their brackets and values
 * their commas readable; everything else is percent-encoded.
 */
export function writeQuery(parameters: JsonObject, arrayFormat: QueryArrayFormat): string {
  const pairs: string[] = []
  for (const name of Object.keys(parameters))
    writeParameter(pairs, encodeName(name), parameters[name] ?? null, arrayFormat)
  return pairs.join('&')
}

/** Appends a query string to a URL. */
export function appendQuery(url: string, query: string): string {
  if (query === '') return url
  const hashAt = url.indexOf('#')
  const bare = hashAt === -1 ? url : url.slice(0, hashAt)
  const separator = bare.includes('?') ? (/[?&]$/.test(bare) ? '' : '&') : '?'
  return `${bare}${separator}${query}`
}

/** Sets query parameters of a URL, replacing those of the same name. */
export function setQuery(url: string, parameters: Readonly<Record<string, string>>): string {
  const names = Object.keys(parameters)
  if (names.length === 0) return url
  const [bare = '', existing = ''] = url.split('#', 1)[0]?.split(/\?(.*)/s, 2) ?? []
  const kept = existing
    .split('&')
    .filter((pair) => pair !== '' && !names.includes(decodeName(pair.split('=', 1)[0] ?? '')))
  return appendQuery(kept.length === 0 ? bare : `${bare}?${kept.join('&')}`, writeQuery(parameters, 'repeat'))
}

/**
 * Maps the value of each query parameter of a URL; everything else stays as it is written.
 *
 * @param change given the decoded value; `undefined` drops the parameter
 */
export function mapQuery(url: string, change: (value: string) => string | undefined): string {
  const mark = url.indexOf('?')
  if (mark === -1) return url
  const hashAt = url.indexOf('#', mark)
  const end = hashAt === -1 ? url.length : hashAt
  const pairs = url
    .slice(mark + 1, end)
    .split('&')
    .flatMap((pair) => {
      const [name = '', value = ''] = pair.split(/=(.*)/s, 2)
      const before = decodeName(value)
      const after = change(before)
      if (after === undefined) return []
      return [after === before ? pair : `${name}=${encodeURIComponent(after)}`]
    })
  return `${url.slice(0, mark)}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}${url.slice(end)}`
}

function writeParameter(pairs: string[], name: string, value: Json, format: QueryArrayFormat): void {
  if (value === null) return
  if (isJsonObject(value)) {
    for (const key of Object.keys(value))
      writeParameter(pairs, `${name}[${encodeName(key)}]`, value[key] ?? null, format)
  } else if (!Array.isArray(value)) {
    pairs.push(`${name}=${encodeURIComponent(String(value))}`)
  } else {
    writeList(pairs, name, value, format)
  }
}

function writeList(pairs: string[], name: string, items: readonly Json[], format: QueryArrayFormat): void {
  switch (format) {
    case 'comma':
      if (items.length > 0) pairs.push(`${name}=${items.map((item) => encodeURIComponent(scalarText(item))).join(',')}`)
      return
    case 'brackets':
      for (const [index, item] of items.entries())
        writeParameter(pairs, isJsonObject(item) ? `${name}[${index}]` : `${name}[]`, item, format)
      return
    case 'indices':
      for (const [index, item] of items.entries()) writeParameter(pairs, `${name}[${index}]`, item, format)
      return
    case 'repeat':
      for (const item of items) writeParameter(pairs, name, item, format)
      return
  }
}

function scalarText(item: Json): string {
  return typeof item === 'object' ? JSON.stringify(item) : String(item)
}

function encodeName(name: string): string {
  return encodeURIComponent(name).replaceAll('%5B', '[').replaceAll('%5D', ']')
}

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name.replaceAll('+', ' '))
  } catch {
    return name
  }
}
