import { z } from 'zod'
import { Failure } from '../../../foundation/base/index.ts'
import { withSchema } from '../format.ts'
import { nameText } from '../schema-types.ts'
import { type PaginationFormat, textAt } from './paginator.ts'
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
  summary:
    'Follows the `Link` header as given, never rebuilt, on origin and path of the request, `allowed_origins` and `allowed_paths`.',
  config,
  compile: withSchema(config, (parsed) => ({
    format: 'link_header',
    rules: compileRules(parsed, false),
    paginator: {
      ends: [{ reason: 'link_absent', when: `the Link header names no relation "${parsed.rel}"` }],
      onRepeatedPage: 'end',
      requestKey: (position, page) => ({ url: position.url ?? page.url }),
      start: () => ({}),
      request: (position) => ({
        url: position.url === undefined ? undefined : textAt(position, 'url'),
        params: [],
        values: {},
      }),
      next: ({ headers, url }) => {
        const link = findLink(headers.link, parsed.rel, url)
        return link === undefined ? { kind: 'end', reason: 'link_absent' } : { kind: 'next', position: { url: link } }
      },
    },
  })),
}

/**
 * The target of the link with that relation (RFC 8288), absolute; relative targets are resolved against the page's URL.
 *
 * The first `rel` parameter of a link counts; it may hold several relations, which are case-insensitive.
 *
 * @throws Failure UPSTREAM_INVALID_RESPONSE
 */
export function findLink(header: string | undefined, rel: string, pageUrl: string): string | undefined {
  if (header === undefined) return undefined
  const wanted = rel.toLowerCase()
  for (const { target, relations } of readLinks(header))
    if (relations.toLowerCase().split(/\s+/).includes(wanted)) return absoluteLink(target, pageUrl)
  return undefined
}

interface Link {
  readonly target: string
  /** The value of its first `rel`, unquoted; empty without one. */
  readonly relations: string
}

/** A parameter up to its value: name and `=`; sticky. */
const PARAMETER = /\s*;\s*([\w!#$&+.^`|~*-]+)\s*(=\s*)?/y
/** Unquoted value of a parameter. */
const WORD = /[^\s",;]*/y

/** Parses the links of a header in one pass: each `<target>; name=value; name="value"; …`; linear. */
function* readLinks(header: string): Generator<Link> {
  let position = 0
  for (;;) {
    const open = header.indexOf('<', position)
    const close = open === -1 ? -1 : header.indexOf('>', open)
    if (close === -1) return
    let relations: string | undefined
    position = close + 1
    for (
      let match = matchAt(PARAMETER, header, position);
      match !== null;
      match = matchAt(PARAMETER, header, position)
    ) {
      position += match[0].length
      const value = match[2] === undefined ? { text: '', end: position } : readValue(header, position)
      if (match[1]?.toLowerCase() === 'rel') relations ??= value.text
      position = value.end
    }
    yield { target: header.slice(open + 1, close), relations: relations ?? '' }
  }
}

/** The value at `start`, quoted or not; an unclosed quote extends to the end. */
function readValue(header: string, start: number): { readonly text: string; readonly end: number } {
  if (header[start] !== '"') {
    const text = matchAt(WORD, header, start)?.[0] ?? ''
    return { text, end: start + text.length }
  }
  let end = start + 1
  while (end < header.length && header[end] !== '"') end += header[end] === '\\' ? 2 : 1
  return { text: header.slice(start + 1, end), end: Math.min(end + 1, header.length) }
}

function matchAt(sticky: RegExp, text: string, position: number): RegExpExecArray | null {
  sticky.lastIndex = position
  return sticky.exec(text)
}

/**
 * The link unchanged when it is absolute, else resolved against the page's URL. A link by http to the host of a page that came by https,
 * as servers behind a proxy write it, is followed by https.
 *
 * @throws Failure UPSTREAM_INVALID_RESPONSE
 */
export function absoluteLink(link: string, pageUrl: string): string {
  if (/^https?:\/\//i.test(link) && URL.canParse(link))
    return isSameHostUnsecured(link, pageUrl) ? secured(link, pageUrl) : link
  if (!URL.canParse(link, pageUrl))
    throw new Failure('UPSTREAM_INVALID_RESPONSE', 'the upstream gave a next link that is not a URL')
  return new URL(link, pageUrl).href
}

function isSameHostUnsecured(link: string, pageUrl: string): boolean {
  const [target, page] = [new URL(link), URL.parse(pageUrl)]
  if (page === null || target.protocol !== 'http:' || page.protocol !== 'https:') return false
  return target.host === page.host || (target.port === '' && target.hostname === page.hostname)
}

/** Path and query stay as they are written. */
function secured(link: string, pageUrl: string): string {
  const { username, password } = new URL(link)
  if (username !== '' || password !== '') return link
  return `${new URL(pageUrl).origin}${link.replace(/^http:\/\/[^/?#]*/i, '')}`
}
