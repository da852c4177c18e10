import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** A request over HTTP. */
export interface Asked {
  readonly url: string
  readonly verb: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A request of the tenant that is measured. */
export interface Probed extends Asked {
  /** Units of its token's rate limit; default 1. */
  readonly units?: number
}

/** A request that is sent so many times at once; `%N%` in its body becomes the number of each. */
export interface Burst extends Asked {
  readonly count: number
}

/** An answer, and when it came on the clock of this machine; status 0 for a connection that broke. */
export interface Answered {
  readonly status: number
  readonly atMs: number
}

/** What one tenant's burst did to another. */
export interface Contest {
  /** Answers of the burst by status. */
  readonly statuses: Readonly<Record<number, number>>
  /** How many requests of the burst were served while one probe waited, at most. */
  readonly overtakenBy: number
  /** Longest wait of a probe during the burst. */
  readonly worstMs: number
  /** The same for a probe without the burst, the median of some. */
  readonly aloneMs: number
  readonly probes: number
  /** Statuses of probes that are not those of the probe without the burst. */
  readonly odd: readonly number[]
}

const ALONE = 5
/** After a probe, for each unit that it costs, so that all of them stay within the limit of their token (500 in 10 s). */
const PACE_MS = 25
const agent = new Agent({ keepAlive: true, maxSockets: 4 })

/** The process of a tenant that sends bursts. */
export class Burster implements Disposable {
  readonly #child: ChildProcess = fork(join(import.meta.dirname, 'burst-main.ts'), { stdio: 'inherit' })

  async send(burst: Burst): Promise<readonly Answered[]> {
    this.#child.send(burst)
    const [answers] = await once(this.#child, 'message')
    return answers
  }

  [Symbol.dispose](): void {
    this.#child.kill()
  }
}

/** Sends the burst, and meanwhile one probe after the other. */
export async function contest(burster: Burster, burst: Burst, probes: readonly Probed[]): Promise<Contest> {
  const alone: Probe[] = []
  for (let round = 0; round < ALONE; round++) for (const probe of probes) alone.push(await askPaced(probe))
  const during: Probe[] = []
  let isOver = false
  const sent = burster.send(burst).finally(() => (isOver = true))
  while (!isOver) for (const probe of probes) during.push(await askPaced(probe))
  const answers = await sent
  const served = answers.filter(({ status }) => status !== 429 && status !== 0).map(({ atMs }) => atMs)
  // What a probe takes alone, such as a wait that it is for, is not the burst's doing.
  const usualMs = new Map(probes.map(({ url }) => [url, medianMs(alone.filter((probe) => probe.url === url))]))
  const overtaking = ({ url, fromMs, toMs }: Probe) =>
    served.filter((atMs) => atMs > fromMs && atMs < toMs - (usualMs.get(url) ?? 0)).length
  const usual = new Set(alone.map(({ status }) => status))
  return {
    statuses: countsOf(answers),
    overtakenBy: Math.max(0, ...during.map(overtaking)),
    worstMs: Math.max(0, ...during.map(({ fromMs, toMs }) => toMs - fromMs)),
    aloneMs: medianMs(alone),
    probes: during.length,
    odd: during.map(({ status }) => status).filter((status) => !usual.has(status) && status >= 429),
  }
}

async function askPaced(probe: Probed): Promise<Probe> {
  const answered = await ask(probe)
  await sleep(PACE_MS * (probe.units ?? 1))
  return answered
}

interface Probe {
  readonly url: string
  readonly status: number
  readonly fromMs: number
  readonly toMs: number
}

function medianMs(probes: readonly Probe[]): number {
  const waits = probes.map(({ fromMs, toMs }) => toMs - fromMs).sort((one, other) => one - other)
  return waits[Math.floor(waits.length / 2)] ?? 0
}

function now(): number {
  return performance.timeOrigin + performance.now()
}

/** Sends one request and waits for its whole answer. */
export function ask({ url, verb, headers, body }: Asked): Promise<Probe> {
  const fromMs = now()
  return new Promise((resolve) => {
    const end = (status: number) => resolve({ url, status, fromMs, toMs: now() })
    const sent = request(url, { agent, method: verb, headers }, (response) => {
      response.resume().on('close', () => end(response.statusCode ?? 0))
    })
    sent.on('error', () => end(0)).end(body)
  })
}

function countsOf(answers: readonly Answered[]): Record<number, number> {
  return Object.fromEntries(
    Map.groupBy(answers, ({ status }) => status)
      .entries()
      .map(([status, all]) => [status, all.length]),
  )
}

/** Processor time of a process, all of its threads, and the processes that it started (Linux), in milliseconds. */
export function cpuMsOfTree(pid: number): number {
  const parents = new Map(
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => {
        const parent = /^\d+ \(.*\) \S (\d+)/.exec(read(`/proc/${name}/stat`))?.[1]
        return parent === undefined ? [] : [[Number(name), Number(parent)] as const]
      }),
  )
  const isWithin = (each: number): boolean => each === pid || (parents.has(each) && isWithin(parents.get(each) ?? 0))
  return [...parents.keys()].filter(isWithin).reduce((sum, each) => sum + cpuMsOfThreads(each), 0)
}

function cpuMsOfThreads(pid: number): number {
  const nanoseconds = list(`/proc/${pid}/task`).map((thread) =>
    Number(read(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0] ?? 0),
  )
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e6
}

/** The content of a file of a process, which may have ended meanwhile. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function list(path: string): readonly string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}
