import { truncateText } from '../../foundation/base/index.ts'
import type { Redactor } from '../../foundation/redaction/index.ts'
import { type UrlTemplate, urlTemplateText } from '../expressions/url-template.ts'
import type { ResolvedTarget } from './resolve-target.ts'

/** Longer paths are cut. */
const LENGTH_MAX = 500

const SCHEME_AND_HOST = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i

/**
 * The last request of a call as `GET /contacts/7`, for its errors: method and path, without query parameters. Until a request
 * is built its path is the definition's, placeholders included.
 */
export class RequestLine {
  #line: string | undefined
  /** Of the entry of that request in the request log, once it has ended. */
  logId: string | undefined

  /** Notes what is about to be built. */
  planned({ method, path }: ResolvedTarget): void {
    this.#line = `${method.verb} ${pathOf(templateOf(method.url) + path)}`
  }

  /** Notes what is sent. @param url without authorization parameters */
  built({ method, url }: { readonly method: string; readonly url: string }): void {
    this.#line = `${method} ${pathOf(url)}`
  }

  /** The line with the secrets of the call masked; `undefined` before a method was found. */
  masked(redaction: Redactor): string | undefined {
    return this.#line === undefined ? undefined : truncateText(redaction.redactText(this.#line), LENGTH_MAX)
  }
}

function templateOf(url: UrlTemplate | undefined): string {
  return url === undefined ? '' : urlTemplateText(url)
}

function pathOf(url: string): string {
  const [path = ''] = url.replace(SCHEME_AND_HOST, '').split(/[?#]/, 1)
  return path === '' ? '/' : path
}
