// The entry of the threads of `shared.ts`: reads a share of a project, and sends back what it found.
import { parentPort, workerData } from 'node:worker_threads'
import { loadCompiler } from '../compiler.ts'
import { readFacts } from './facts.ts'
import type { Share } from './shared.ts'

const { project, wanted }: Share = workerData
parentPort?.postMessage(readFacts(loadCompiler(project.root), project, wanted))
