import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { startTestApp, type TestApp } from '../../../support/app.ts'
import { expectJson } from '../../../support/rest.ts'
import { freshName } from '../../../support/seeded-tenant.ts'

/** A definition with a visible field and a secret one, and nothing to verify: an account is active at once. */
export const KEY_CONFIG: JsonObject = {
  label: 'Key & Co',
  base_url: 'https://api.example.com',
  credentials: {
    api_key: {
      config: {
        fields: [
          { name: 'subdomain', label: 'Subdomain', required: true, format: 'hostname_label', suffix: '.example.com' },
          { name: 'api_key', label: 'API key', type: 'password', required: true },
        ],
      },
    },
  },
  authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
}

/** A page that a browser got. */
interface Page {
  readonly status: number
  readonly headers: Headers
  readonly html: string
  /** Path of the page, after redirects. */
  readonly path: string
}

/** A browser: keeps cookies, follows redirects of this server, and says where a request comes from. */
export class Browser {
  readonly cookies = new Map<string, string>()
  readonly #url: string
  readonly #passOn: (path: string) => string

  /** @param passOn what a reverse proxy before the server makes of a path */
  constructor(url: string, passOn: (path: string) => string = (path) => path) {
    this.#url = url
    this.#passOn = passOn
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Page> {
    return this.#send('GET', path, undefined, headers)
  }

  /** Submits a form of a page of this server. */
  post(
    path: string,
    form: Readonly<Record<string, string>> | URLSearchParams,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Page> {
    return this.#send('POST', path, new URLSearchParams(form), { 'sec-fetch-site': 'same-origin', ...headers })
  }

  async #send(
    method: string,
    path: string,
    body: URLSearchParams | undefined,
    headers: Readonly<Record<string, string>>,
  ): Promise<Page> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(new URL(this.#passOn(path), this.#url), {
      method,
      redirect: 'manual',
      headers: { ...(cookie === '' ? {} : { cookie }), ...headers },
      ...(body === undefined ? {} : { body }),
    })
    for (const line of answer.headers.getSetCookie()) {
      const [name = '', value = ''] = line.split(';', 1)[0]?.split(/=(.*)/s) ?? []
      this.cookies.set(name, value)
    }
    const location = answer.headers.get('location')
    if (answer.status === 303 && location?.startsWith('/') === true) {
      await answer.body?.cancel()
      return await this.#send('GET', location, undefined, headers)
    }
    return { status: answer.status, headers: answer.headers, html: await answer.text(), path }
  }
}

/** The API with a worker and a way to make links. */
export async function startConnectPage(settings: Readonly<Record<string, string>> = {}) {
  const app = await startTestApp(settings)
  const { environmentToken } = app.first
  return {
    app,
    browser: (passOn?: (path: string) => string) => new Browser(app.url, passOn),
    /** Installs an integration of the config. @returns its name */
    install: (config: JsonObject = KEY_CONFIG, name = freshName('example')) => install(app, config, name),
    /** Makes a link. */
    link: (input: JsonObject = {}) =>
      expectJson('POST', `${app.url}/link-token`, environmentToken, { tenant_id: 'acme', ...input }),
    account: (id: string) => expectJson('GET', `${app.url}/integrated-account/${id}`, environmentToken),
  }
}

async function install(app: TestApp, config: JsonObject, name: string): Promise<string> {
  const { teamToken, environmentToken } = app.first
  const integration = await expectJson('POST', `${app.url}/integration`, teamToken, { name, config })
  await expectJson('POST', `${app.url}/environment-integration`, environmentToken, {
    integration_id: integration.id,
    show_in_catalog: true,
  })
  return name
}
