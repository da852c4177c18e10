import { isJsonObject, type Json, parseJson } from '../../../../src/foundation/json/index.ts'

/** What replaces a text: another address of the same origin, and a value that looks like the one before. */
const otherTexts = (text: string): Json[] =>
  /^https?:/.test(text)
    ? [new URL('/payroll?all=1', text).href, text.replace('/lists/', '/records/../payroll/'), `${text}0`]
    : [`${text}0`, '/payroll', '../payroll', text.replace(/[a-z]/i, (letter) => (letter === 'a' ? 'b' : 'a'))]

/** The value with one leaf replaced, for each leaf and replacement. */
export function* mutateLeaves(value: Json): Generator<Json> {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries())
      for (const changed of mutateLeaves(item)) yield value.with(index, changed)
    yield [...value, 'x']
  } else if (isJsonObject(value)) {
    for (const [name, item] of Object.entries(value)) {
      for (const changed of mutateLeaves(item)) yield { ...value, [name]: changed }
      const { [name]: _, ...rest } = value
      yield rest
    }
    yield { ...value, position: { url: 'http://127.0.0.1/payroll' } }
  } else if (typeof value === 'string') {
    for (const other of otherTexts(value)) if (other !== value) yield other
  } else if (typeof value === 'number') {
    yield value + 1
    yield value * 10 + 1
    yield 0
  } else yield 'x'
}

/**
 * Forged versions of a token that a client holds: each leaf of JSON in its bytes replaced, bytes changed, removed and added, and
 * texts that decode to the same bytes.
 *
 * @param bytesMax most positions whose byte is changed, spread over the token
 */
export function forgeText(token: string, bytesMax: number): readonly string[] {
  const bytes = Buffer.from(token, 'base64url')
  const forged = new Set<string>()
  const add = (changed: Buffer | string) =>
    forged.add(typeof changed === 'string' ? changed : changed.toString('base64url'))
  for (const open of ['{', '[']) {
    const start = bytes.indexOf(open)
    const value = start === -1 ? undefined : jsonAt(bytes, start)
    if (value === undefined) continue
    for (const changed of mutateLeaves(value))
      add(Buffer.concat([bytes.subarray(0, start), Buffer.from(JSON.stringify(changed))]))
  }
  const step = Math.max(1, Math.floor(bytes.length / bytesMax))
  for (let at = 0; at < bytes.length; at += step)
    for (const bit of [1, 0x80]) {
      const changed = Buffer.from(bytes)
      changed.writeUInt8((changed.readUInt8(at) ^ bit) & 0xff, at)
      add(changed)
    }
  for (const length of [0, 1, bytes.length >> 1, bytes.length - 1]) add(bytes.subarray(0, length))
  add(Buffer.concat([bytes, Buffer.of(0)]))
  add(Buffer.concat([bytes, bytes]))
  add(Buffer.concat([bytes.subarray(bytes.length >> 1), bytes.subarray(0, bytes.length >> 1)]))
  for (const same of [`${token}=`, ` ${token}`, `${token}.`, token.slice(0, -1), `${token}A`]) add(same)
  forged.delete(token)
  forged.delete('')
  return [...forged]
}

/** Forged versions of a state: each leaf replaced, and texts in it forged like tokens. */
export function forgeState(state: Json, bytesMax: number): readonly Json[] {
  const forged = [...mutateLeaves(state)]
  if (isJsonObject(state))
    for (const [name, text] of Object.entries(state))
      if (typeof text === 'string' && text.length > 40)
        forged.push(...forgeText(text, bytesMax).map((changed) => ({ ...state, [name]: changed })))
  const own = JSON.stringify(state)
  return forged.filter((changed) => JSON.stringify(changed) !== own)
}

function jsonAt(bytes: Buffer, start: number): Json | undefined {
  try {
    return parseJson(bytes.subarray(start).toString())
  } catch {
    return undefined
  }
}
