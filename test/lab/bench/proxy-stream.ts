import { readFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { withProxyBench } from './support/proxy-bench.ts'
import { reportAtLeast, reportAtMost, reportBaseline } from './support/report.ts'

const BLOB_BYTES = 100 * 1024 * 1024
const ROUNDS = 7
const RATIO_MIN = 0.8
/** More would mean that bodies are held. */
const GROWTH_MEGABYTES_MAX = 64
const CHUNK = Buffer.alloc(64 * 1024, 7)

/** 100 MB down and up through `/custom`, against a bare undici reverse proxy, and what the process grows by. */
export async function run(): Promise<void> {
  await withProxyBench(BLOB_BYTES, async ({ product, accountId, bareProxy }) => {
    const path = `/custom/blob?integrated_account_id=${accountId}`
    const token = product.bootstrap.environment_token
    // Code, buffers and connections of both directions are there before memory is looked at.
    for (const method of ['GET', 'POST'] as const) await transfer(product.port, method, path, token)
    const megabytesBefore = peakMegabytes(product.child.pid)
    for (const [direction, method] of [
      ['down', 'GET'],
      ['up', 'POST'],
    ] as const) {
      const floors: number[] = []
      const owns: number[] = []
      // The first round warms both up.
      for (let round = 0; round <= ROUNDS; round++) {
        const floor = await transfer(bareProxy.port, method, '/blob', token)
        const own = await transfer(product.port, method, path, token)
        if (round > 0) floors.push(floor)
        if (round > 0) owns.push(own)
      }
      reportBaseline(`proxy-stream/${direction}/floor`, median(floors), 'MB/s')
      reportBaseline(`proxy-stream/${direction}`, median(owns), 'MB/s')
      reportAtLeast(`proxy-stream/${direction}/ratio`, median(owns) / median(floors), 'x floor', RATIO_MIN)
    }
    const grown = peakMegabytes(product.child.pid) - megabytesBefore
    reportAtMost('proxy-stream/growth', grown, 'MB', GROWTH_MEGABYTES_MAX)
  })
}

/** One transfer of the blob. @returns megabytes per second */
function transfer(port: number, method: 'GET' | 'POST', path: string, token: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const from = performance.now()
    const headers = {
      authorization: `Bearer ${token}`,
      ...(method === 'GET' ? {} : { 'content-type': 'application/octet-stream', 'content-length': BLOB_BYTES }),
    }
    const request = httpRequest({ host: '127.0.0.1', port, method, path, headers }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`))
      response.on('data', () => {})
      response.on('end', () => resolve(BLOB_BYTES / 1_048.576 / (performance.now() - from)))
    })
    request.on('error', reject)
    let left = method === 'GET' ? 0 : BLOB_BYTES
    const write = () => {
      while (left > 0) {
        left -= CHUNK.length
        if (!request.write(CHUNK)) return
      }
      request.end()
    }
    request.on('drain', write)
    write()
  })
}

/** The most memory a process has ever had. */
function peakMegabytes(pid: number | undefined): number {
  const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kilobytes) / 1_024
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
