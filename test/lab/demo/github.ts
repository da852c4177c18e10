import { createEmulator } from 'emulate'
import { callRest, expectJson } from '../../support/rest.ts'
import { startGitHubLinks } from './github-links.ts'

/** The account that the demo connects. */
export const OWNER = 'octocat'
/** With which application a customer signs in; the emulation takes any while none is registered. */
export const OAUTH_APP = { client_id: 'patchbay-demo', client_secret: 'the-secret-of-patchbay-demo' } as const
const TOKEN = 'ghp_the-token-of-octocat'
/** Another account, with one repository and many issues. */
const ARCHIVIST = { login: 'archivist', token: 'ghp_the-token-of-archivist', repository: 'history' } as const
/** Issues opened concurrently. */
const OPENED_AT_ONCE = 20
/** Page size when the emulation is read directly. */
const PER_PAGE = 100
const PAGES_MAX = 30

/** Repositories of the account: more than a page of the demo, and one with more issues than two pages. */
const REPOSITORIES: readonly { readonly name: string; readonly issues: number; readonly private?: boolean }[] = [
  { name: 'hello-world', issues: 7 },
  { name: 'patch-panel', issues: 3, private: true },
  { name: 'quiet-place', issues: 0 },
  { name: 'spoon-knife', issues: 1 },
]

/** Ids of all records, by resource of the definition. */
export type Holdings = Readonly<Record<'repositories' | 'issues', ReadonlySet<number>>>

/** An emulation of GitHub on loopback. */
export interface GitHub extends AsyncDisposable {
  readonly url: string
  /** Personal access token of the account. */
  readonly token: string
  /** Number of issues by full name of the repository. */
  readonly repositories: ReadonlyMap<string, number>
  /** Personal access token of another account, which has no issues until `fillArchive`. */
  readonly archiveToken: string
  /** Opens an issue in a repository of the account. @returns its number */
  openIssue(repository: string): Promise<number>
  /** Opens so many issues in the repository of the other account. */
  fillArchive(issues: number): Promise<void>
  /** Records of an account now, read directly instead of through Patchbay. */
  holdings(token: string): Promise<Holdings>
}

/** Starts the emulation and opens the issues; closes one of them, since a sync reads closed ones too. */
export async function startGitHub(): Promise<GitHub> {
  const emulator = await createEmulator({
    service: 'github',
    port: 0,
    seed: {
      tokens: {
        [TOKEN]: { login: OWNER, scopes: ['repo', 'user'] },
        [ARCHIVIST.token]: { login: ARCHIVIST.login, scopes: ['repo', 'user'] },
      },
      github: {
        users: [{ login: OWNER }, { login: ARCHIVIST.login }],
        repos: [
          ...REPOSITORIES.map(({ name, private: isPrivate }) => ({ owner: OWNER, name, private: isPrivate ?? false })),
          { owner: ARCHIVIST.login, name: ARCHIVIST.repository, private: false },
        ],
      },
    },
  })
  // It listens on IPv4 only; `localhost` may resolve to IPv6 first.
  const links = await startGitHubLinks(emulator.url.replace('localhost', '127.0.0.1'))
  const { url } = links
  for (const { name, issues } of REPOSITORIES)
    for (let number = 1; number <= issues; number++)
      await callRest('POST', `${url}/repos/${OWNER}/${name}/issues`, TOKEN, { title: `Issue ${number}` })
  await expectJson('PATCH', `${url}/repos/${OWNER}/hello-world/issues/1`, TOKEN, { state: 'closed' })
  return {
    url,
    token: TOKEN,
    repositories: new Map(REPOSITORIES.map(({ name, issues }) => [`${OWNER}/${name}`, issues])),
    archiveToken: ARCHIVIST.token,
    openIssue: (repository) => openIssue(url, repository),
    fillArchive: (issues) => fillArchive(url, issues),
    holdings: (token) => readHoldings(url, token),
    async [Symbol.asyncDispose]() {
      await links[Symbol.asyncDispose]()
      await emulator.close()
    },
  }
}

async function openIssue(url: string, repository: string): Promise<number> {
  const { body } = await callRest('POST', `${url}/repos/${OWNER}/${repository}/issues`, TOKEN, {
    title: 'Another issue',
  })
  return body.number
}

async function fillArchive(url: string, issues: number): Promise<void> {
  const address = `${url}/repos/${ARCHIVIST.login}/${ARCHIVIST.repository}/issues`
  for (let first = 1; first <= issues; first += OPENED_AT_ONCE) {
    const numbers = Array.from({ length: Math.min(OPENED_AT_ONCE, issues - first + 1) }, (_, index) => first + index)
    await Promise.all(numbers.map((number) => callRest('POST', address, ARCHIVIST.token, { title: `Issue ${number}` })))
  }
}

async function readHoldings(url: string, token: string): Promise<Holdings> {
  const repositories = await readAll(`${url}/user/repos`, token)
  const issues = await Promise.all(
    repositories.map(({ full_name }) => readAll(`${url}/repos/${full_name}/issues?state=all`, token)),
  )
  return { repositories: idsOf(repositories), issues: idsOf(issues.flat()) }
}

interface GitHubRecord {
  readonly id: number
  readonly full_name?: string
}

/** All pages of a list by page number, not by the Link header, which Patchbay follows. */
async function readAll(address: string, token: string): Promise<readonly GitHubRecord[]> {
  const records: GitHubRecord[] = []
  for (let page = 1; page <= PAGES_MAX; page++) {
    const url = new URL(address)
    url.searchParams.set('per_page', String(PER_PAGE))
    url.searchParams.set('page', String(page))
    const found: unknown = await expectJson('GET', url.href, token)
    if (!Array.isArray(found)) throw new Error(`${address} does not answer with a list`)
    records.push(...found)
    if (found.length < PER_PAGE) return records
  }
  throw new Error(`${address} has more than ${PAGES_MAX} pages`)
}

function idsOf(records: readonly GitHubRecord[]): ReadonlySet<number> {
  return new Set(records.map(({ id }) => id))
}
