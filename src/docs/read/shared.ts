// Reads a project with two threads, each of which has a compiler of its own: most of the time goes into types, and those of one module's functions are asked for by that module alone.
import { existsSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Compiler } from '../compiler.ts'
import { byText } from '../model.ts'
import type { Project } from '../project.ts'
import { readFacts } from './facts.ts'
import type { Facts, FactsWanted } from './facts.ts'

/** What a thread is asked for. */
export interface Share {
  readonly project: Project
  readonly wanted: FactsWanted
}

/** Fewer modules than these are read sooner by one thread, since every thread parses all sources. */
const FEWEST = 200

/** Tests are only parsed: a byte of them takes this part of the time of a byte of a source. */
const TEST_PART = 1 / 8

const ENTRY = new URL('./worker.js', import.meta.url)

/** Reads some sources and tests of a project, in two threads if there is enough to do and the package is built. */
export async function readShared(ts: Compiler, project: Project, wanted: FactsWanted): Promise<Facts> {
  if (wanted.sources.length < FEWEST || availableParallelism() < 2 || !existsSync(ENTRY)) return readFacts(ts, project, wanted)
  const [first, second] = await Promise.all(halves(project.root, wanted).map(async (half) => readInThread({ project, wanted: half })))
  if (first === undefined || second === undefined) throw new Error('unreachable: there are two halves')
  return {
    sources: { ...first.sources, ...second.sources },
    tests: { ...first.tests, ...second.tests },
    outside: [...new Set([...first.outside, ...second.outside])].toSorted(byText),
  }
}

/** Two parts that take about the same time. Neighbours stay together. */
function halves(root: string, { sources, tests }: FactsWanted): readonly FactsWanted[] {
  const files = [...sources.map((path) => ({ path, part: 1 })), ...tests.map((path) => ({ path, part: TEST_PART }))]
  const costs = files.map(({ path, part }) => statSync(join(root, path)).size * part)
  const half = costs.reduce((sum, cost) => sum + cost, 0) / 2
  let sum = 0
  const first = new Set(files.filter((_, i) => (sum += costs[i] ?? 0) <= half).map(({ path }) => path))
  const part = (isFirst: boolean): FactsWanted => ({
    sources: sources.filter((path) => first.has(path) === isFirst),
    tests: tests.filter((path) => first.has(path) === isFirst),
  })
  return [part(true), part(false)]
}

async function readInThread(share: Share): Promise<Facts> {
  // Syntax trees and types outlive the young generation of the usual size, which is then copied in vain.
  const worker = new Worker(ENTRY, { workerData: share, resourceLimits: { maxYoungGenerationSizeMb: 128, maxOldGenerationSizeMb: 4096 } })
  return new Promise((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
}
