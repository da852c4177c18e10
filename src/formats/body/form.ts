import { Failure, isJsonObject } from '../../base/index.ts'
import { writeQuery } from '../query-string.ts'
import type { BodyFormat } from './body.ts'

/** `form`: `application/x-www-form-urlencoded`, nested objects in brackets, lists with `[]`. */
export const form: BodyFormat = {
  format: 'form',
  summary: 'A URL-encoded form (`application/x-www-form-urlencoded`).',
  encode: (value) => {
    if (!isJsonObject(value)) throw new Failure('INVALID_FIELD', 'a form body must be an object of fields')
    return { content: writeQuery(value, 'brackets'), contentType: 'application/x-www-form-urlencoded' }
  },
}
