import { z } from 'zod'
import { anyJson, expressionText, fieldList } from '../formats/index.ts'
import { methodSchema } from './method-schema.ts'

/** What an expression may be written as: the text, or `{expression}`. */
const expression = z.union([expressionText(), z.strictObject({ expression: expressionText() })])

const stepTypes = [
  z.strictObject({ type: z.literal('request'), config: methodSchema }),
  z.strictObject({ type: z.literal('transform'), config: expression }),
  z.strictObject({
    type: z.literal('update_context'),
    config: z.union([expression, z.record(z.string(), anyJson())]).optional(),
  }),
  z.strictObject({ type: z.literal('form'), config: z.strictObject({ fields: fieldList() }) }),
] as const

const stepKeys = {
  name: z.string().optional().describe('Other steps read the result as $steps.<name>.'),
  run_if: expressionText().optional().describe('JSONata; the step is skipped unless the result is truthy.'),
}

const step = z.discriminatedUnion('type', [
  stepTypes[0].extend(stepKeys),
  stepTypes[1].extend(stepKeys),
  stepTypes[2].extend(stepKeys),
  stepTypes[3].extend(stepKeys),
])

const steps = z.strictObject({ steps: z.array(step).min(1).max(50) })

/** A named action: one step, or several that share a running context. */
export const actionSchema = z.union([z.discriminatedUnion('type', stepTypes), steps]).meta({ id: 'Action' })
