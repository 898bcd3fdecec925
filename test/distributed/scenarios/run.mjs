// Runs scenarios as one rank of a world. `node run.mjs threads 2 FILE` starts a thread world and prints its ranks' results as JSON; under mpirun, `node run.mjs mpi
// 0 FILE` is one rank, and rank 0 prints what all have found.
import { pathToFileURL } from 'node:url'
import { allGatherObject, destroyProcessGroup, getRank, initProcessGroup, runRanks } from 'tensorfx/distributed'

/** Runs every exported function of a scenario file, in order. An error is a result. */
export default async function run(file, mpi = false) {
  await initProcessGroup({ timeout: 20_000, ...(mpi ? { backend: 'mpi' } : {}) })
  const scenarios = await import(file)
  const results = {}
  for (const name of Object.keys(scenarios)) {
    try {
      results[name] = (await scenarios[name]()) ?? null
    } catch (error) {
      results[name] = { error: error.message, name: error.name, stack: error.stack }
    }
  }
  const all = mpi ? allGatherObject(results) : results
  const rank = getRank()
  destroyProcessGroup()
  return mpi && rank !== 0 ? null : all
}

const [, script, world, size, file] = process.argv
if (script !== undefined && import.meta.url === pathToFileURL(script).href) {
  const url = pathToFileURL(file).href
  const results = world === 'threads' ? await runRanks(Number(size), import.meta.url, { args: [url] }) : await run(url, true)
  if (results !== null) console.log(`RESULTS ${JSON.stringify(results)}`)
}
