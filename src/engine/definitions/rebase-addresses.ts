import { type DotPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { resolvedSchema } from './config-schema.ts'
import { listFields } from './schema-walk.ts'

/** A definition whose addresses follow the `base_url` of an override. */
interface MovedDefinition {
  readonly config: JsonObject
  /** The settings that changed. */
  readonly moved: readonly DotPath[]
}

/**
 * Moves every other `base_url` of a definition (of methods, steps, verifications, identities) that has the origin of the
 * integration's to the `base_url` of the override, so that an emulator or a regional host gets all requests to the API: another path
 * of one API (`/v2` beside `/v1`) is not another third party. Addresses of other origins stay, and so do those of token endpoints
 * (`tokenHost`, …), which receive the client's secret: an override names them itself.
 *
 * A path that both have in common stays in place: `https://api.x.com/v1` moved to `https://proxy.example/x/v1` moves
 * `https://api.x.com/v2` to `https://proxy.example/x/v2`; moved to an address that does not end with `/v1`, to its origin.
 */
export function followBaseUrl(config: JsonObject, override: JsonObject): MovedDefinition {
  const [from, to] = [config.base_url, override.base_url]
  if (typeof from !== 'string' || typeof to !== 'string' || from === to) return { config, moved: [] }
  const origin = originOf(from)
  const others = listFields(resolvedSchema, config).flatMap(({ role, value, path }) =>
    role.kind === 'url' &&
    path.length > 1 &&
    path.at(-1) === 'base_url' &&
    typeof value === 'string' &&
    originOf(value) === origin
      ? [{ path, value }]
      : [],
  )
  const moved = others.reduce<Json>(
    (into, { path, value }) => withValue(into, path, moveAddress(value, from, to)),
    config,
  )
  return { config: isJsonObject(moved) ? moved : config, moved: others.map(({ path }) => path) }
}

/** Scheme and authority, which may be a placeholder. */
const ORIGIN = /^(?:https?:\/\/)?(?:\{\{[^}]*\}\}|[^/{])+/i

function originOf(address: string): string {
  return ORIGIN.exec(address)?.[0].toLowerCase() ?? ''
}

function moveAddress(address: string, from: string, to: string): string {
  const trimmed = to.replace(/\/$/, '')
  if (address === from) return to
  const origin = originOf(from)
  const path = from.slice(origin.length).replace(/\/$/, '')
  const start = trimmed.endsWith(path)
    ? trimmed.slice(0, trimmed.length - path.length)
    : trimmed.slice(0, originOf(to).length)
  return `${start}${address.slice(origin.length)}`
}

function withValue(into: Json, [step, ...rest]: DotPath, value: Json): Json {
  if (step === undefined) return value
  if (Array.isArray(into)) return into.with(Number(step), withValue(into[Number(step)] ?? null, rest, value))
  return isJsonObject(into) ? { ...into, [step]: withValue(into[step] ?? null, rest, value) } : into
}
