import { Failure } from '../../base/index.ts'
import type { BodyFormat } from './body.ts'

/** `xml`: part of the vocabulary, not built yet; Check says so. */
export const xml: BodyFormat = {
  format: 'xml',
  summary: 'XML (`application/xml`).',
  readiness: 'announced',
  encode: () => {
    throw new Failure('DEFINITION_INVALID', 'the body format xml is not available')
  },
}
