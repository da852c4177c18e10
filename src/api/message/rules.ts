import { create, type DescMessage, type Message } from '@bufbuild/protobuf'
import type { Path } from '@bufbuild/protobuf/reflect'
import { createValidator } from '@bufbuild/protovalidate'
import type { Finding } from '../service.ts'
import { describeRule } from './phrase.ts'

/** Longest text that a pattern of the contract may match, in UTF-16 units; what a pattern describes is a name or an id. */
const PATTERN_TEXT_LENGTH_MAX = 4_096

const patterns = new Map<string, RegExp>()

/**
 * The engine that comes with protovalidate takes 50 ms per MiB. The patterns are the contract's own, so they need no engine
 * that is safe for those of others.
 */
const validator = createValidator({ regexMatch: matchesPattern })

/** Everything in the message that breaks a rule of the contract (`buf.validate`). */
export function validateRules(desc: DescMessage, message: Message): readonly Finding[] {
  const result = validator.validate(desc, message)
  switch (result.kind) {
    case 'valid':
      return []
    case 'invalid':
      return result.violations.map(({ field, message: text, ruleId }) => ({
        field: textOfPath(field),
        description: describeRule(text),
        rule: ruleId,
      }))
    case 'error':
      // The contract itself is wrong; the lint finds it first.
      throw result.error
  }
}

function matchesPattern(source: string, text: string): boolean {
  if (text.length > PATTERN_TEXT_LENGTH_MAX) return false
  const pattern = patterns.get(source) ?? new RegExp(source, 'u')
  patterns.set(source, pattern)
  return pattern.test(text)
}

/** Compiles the rules of a message type, which the first request would wait for otherwise (up to 33 ms). */
export function precompileRules(desc: DescMessage): void {
  validator.validate(desc, create(desc))
}

/** A path as every answer of the API writes it: `resources[2].depends_on`; a rule of the whole message has none. */
function textOfPath(path: Path): string {
  if (path.length === 0) return 'request'
  return path.reduce((text, step) => {
    if (step.kind === 'list_sub') return `${text}[${step.index}]`
    const name = step.kind === 'map_sub' ? String(step.key) : step.name
    return text === '' ? name : `${text}.${name}`
  }, '')
}
