// A process that runs the tests of one mutant after the other. Receives plans and answers { killed, by }.
import { join } from 'node:path'
import { mutationVitest, root } from './vitest.mjs'

/** The first failure of the run. The state that vitest keeps still holds failures of the run before, for files that this one does not reach. */
let failure = null
const reporter = {
  onTestCaseResult: (test) => {
    if (test.result().state === 'failed') failure ??= `${test.module.relativeModuleId} > ${test.fullName}`
  },
  onTestModuleEnd: (module) => {
    const [error] = module.errors()
    if (error !== undefined) failure ??= `${module.relativeModuleId} does not load: ${error.message}`
  },
  onTestSuiteResult: (suite) => {
    const [error] = suite.errors()
    if (error !== undefined) failure ??= `${suite.fullName}: ${error.message}`
  },
}

const vitest = await mutationVitest(process.argv[2], { workers: 1, bail: 1, reporter })
process.send('ready')

process.on('message', async (plan) => {
  failure = null
  vitest.provide('mutant', { id: plan.id, hitLimit: plan.hitLimit })
  const project = vitest.getRootProject()
  const specs = Object.entries(plan.specs).map(([file, testIds]) => project.createSpecification(join(root, file), { testIds }))
  const { unhandledErrors } = await vitest.runTestSpecifications(specs)
  const by = failure ?? (unhandledErrors.length > 0 ? String(unhandledErrors[0]?.message ?? unhandledErrors[0]) : null)
  process.send({ killed: by !== null, by })
})
