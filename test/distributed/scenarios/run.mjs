// Runs scenarios as one rank of a world. `node run.mjs threads 2 FILE...` starts a thread world and prints its ranks' results as JSON; under mpirun, `node run.mjs
// mpi 2 FILE...` is one rank, and rank 0 prints what all have found.
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import { allGatherObject, destroyProcessGroup, getRank, initProcessGroup, runRanks } from 'tensorfx/distributed'

/** Runs every exported function of the scenario files, in order. An error is a result. */
export default async function run(files, mpi = false) {
  await initProcessGroup({ timeout: 60_000, ...(mpi ? { backend: 'mpi' } : {}) })
  const results = {}
  for (const file of files) {
    const scenarios = await import(file)
    const found = {}
    results[basename(file, '.mjs')] = found
    for (const name of Object.keys(scenarios)) {
      try {
        found[name] = (await scenarios[name]()) ?? null
      } catch (error) {
        found[name] = { error: error.message, name: error.name, stack: error.stack }
      }
    }
  }
  const all = mpi ? allGatherObject(results) : results
  const rank = getRank()
  destroyProcessGroup()
  return mpi && rank !== 0 ? null : all
}

const [, script, world, size, ...files] = process.argv
if (script !== undefined && import.meta.url === pathToFileURL(script).href) {
  const urls = files.map((file) => pathToFileURL(file).href)
  const results = world === 'threads' ? await runRanks(Number(size), import.meta.url, { args: [urls] }) : await run(urls, true)
  if (results !== null) console.log(`RESULTS ${JSON.stringify(results)}`)
}
