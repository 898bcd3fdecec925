// The entry of the thread of `shared.ts`: writes its part of the pages of a program, and sends them back.
import { parentPort, workerData } from 'node:worker_threads'
import { Lookup } from './lookup.ts'
import type { PagesShare } from './shared.ts'
import { writePages } from './site.ts'

const { model, sources, options, part }: PagesShare = workerData
parentPort?.postMessage(writePages(new Lookup(JSON.parse(model), options.sourceUrl), sources, options, part))
