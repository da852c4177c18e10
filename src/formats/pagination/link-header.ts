import { z } from 'zod'
import { withSchema } from '../format.ts'
import { nameText } from '../vocabulary.ts'
import { findLink } from './link.ts'
import type { PaginationFormat } from './paginator.ts'
import { textAt } from './position.ts'
import { commonKeys, compileRules, refineParamNames } from './rules.ts'

const config = z
  .strictObject({
    ...commonKeys,
    rel: nameText().default('next').describe('Relation of the link to follow.'),
  })
  .superRefine(refineParamNames(['limit_key']))
  .prefault({})

/** `link_header`: follows the Link header (RFC 8288). */
export const linkHeader: PaginationFormat = {
  format: 'link_header',
  summary: 'Follows the `Link` header as given, never rebuilt, on the origin of the request or `allowed_origins`.',
  config,
  compile: withSchema(config, (parsed) => ({
    format: 'link_header',
    rules: compileRules(parsed, false),
    paginator: {
      ends: [{ reason: 'link_absent', when: `the Link header names no relation "${parsed.rel}"` }],
      whenRepeated: 'end',
      identify: (position, page) => ({ url: position.url ?? page.url }),
      start: () => ({}),
      request: (position) => ({
        url: position.url === undefined ? undefined : textAt(position, 'url'),
        placed: [],
        values: {},
      }),
      next: ({ headers, url }) => {
        const link = findLink(headers.link, parsed.rel, url)
        return link === undefined ? { kind: 'end', reason: 'link_absent' } : { kind: 'next', position: { url: link } }
      },
    },
  })),
}
