// A process that runs test files with many mutants; see sharedRunner.mjs. node sharedWorker.mjs WORK FILES…, in the order in which they run.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { mutationVitest, root } from './vitest.mjs'

const [work, ...files] = process.argv.slice(2)
const place = (spec) => files.indexOf(spec.moduleId.slice(root.length))
class InOrder {
  shard = (specs) => specs
  sort = (specs) => specs.toSorted((a, b) => place(a) - place(b))
}
process.env.TENSORFX_MUTATE_GROUP = String(process.pid)
const vitest = await mutationVitest(work, {
  workers: 1,
  runner: fileURLToPath(new URL('sharedRunner.mjs', import.meta.url)),
  sequence: { sequencer: InOrder },
})
vitest.provide('mutant', { id: undefined, hitLimit: undefined })
const project = vitest.getRootProject()
await vitest.runTestSpecifications(files.map((file) => project.createSpecification(join(root, file))))
process.exit(0)
