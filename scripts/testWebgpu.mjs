// npm run test:webgpu: the tests that need a GPU, or a driver that computes on the CPU in its place, in Node and then in pages of headless Chromium.
//
// The tables of operations run with a second driver too, if Mesa's is there.
//
//   --if-there     leaves them out, with the reason, where there is no GPU
//   --pages a,b    the files that run in pages too; default: all that can
//   other arguments choose files
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { testInPages } from './webgpu/pages.mjs'

// Vulkan's loader reads the name of its driver when it is first used. Chromium brings a driver for the CPU.
const SOFTWARE = '/usr/lib/chromium/vk_swiftshader_icd.json'
if (process.env.VK_ICD_FILENAMES === undefined && existsSync(SOFTWARE)) process.env.VK_ICD_FILENAMES = SOFTWARE

/**
 * Mesa's driver that computes on the CPU. Its compiler rearranges arithmetic, as those of most GPUs do and that of SwiftShader does not: the tables of operations run on it, too, where it is there and no other driver
 * was chosen. Dawn needs version 23 or later.
 */
const MESA = ['/usr/share/vulkan/icd.d/lvp_icd.json', '/usr/share/vulkan/icd.d/lvp_icd.x86_64.json'].find((path) => existsSync(path))
const ON_MESA = ['scalars', 'graphs', 'reductions']

/** What Node says of the GPU, in a process of its own: it is not loaded twice. */
const PROBE = `
const { create } = await import('webgpu')
const gpu = create([])
const adapter = await gpu.requestAdapter()
if (adapter === null) throw new Error('the driver offers no adapter')
console.log(adapter.info.description || adapter.info.vendor)
process.exit(0)
`

const { values, positionals: chosen } = parseArgs({
  allowPositionals: true,
  options: {
    'if-there': { type: 'boolean', default: false },
    pages: {
      type: 'string',
      default:
        'graphs,reductions,scalars,operators,faults,steps,late,tensors,captured,training,batch,complaints,profile,lost,fakes,limits,systems,sharing,emitted,worker',
    },
  },
})
// All drawn cases, but for the part that .ci/run tests.
if (!values['if-there']) process.env.TENSORFX_FULL = '1'
const probed = (env = process.env) => spawnSync(process.execPath, ['--input-type=module', '--eval', PROBE], { encoding: 'utf8', env })
const probe = probed()
if (probe.status !== 0) {
  const reason = probe.stderr.split('\n').find((line) => /Error/.test(line)) ?? `the process ended with ${probe.status ?? probe.signal}`
  console.log(`The tests on the GPU are left out: there is none here (${reason.trim()}). On Debian: apt-get install chromium libvulkan1.`)
  process.exit(values['if-there'] ? 0 : 1)
}
console.log(`The tests run on: ${probe.stdout.trim()}`)

/** Runs the files with vitest. Resolves to its exit code, and the numbers of its last line. */
function inNode(files = chosen, env = process.env) {
  return new Promise((resolve) => {
    const child = spawn('npx', ['vitest', 'run', '--project', 'webgpu', ...files], { stdio: ['inherit', 'pipe', 'inherit'], env })
    let text = ''
    child.stdout.on('data', (data) => {
      process.stdout.write(data)
      text += String(data)
    })
    child.on('close', (code) => {
      const [, passed = '0', failed = '0'] = [...text.matchAll(/^(\d+) passed, (\d+) failed$/gm)].at(-1) ?? []
      resolve({ code, passed: Number(passed), failed: Number(failed) })
    })
  })
}

const runs = [await inNode()]
if (process.env.VK_ICD_FILENAMES === SOFTWARE && MESA !== undefined) {
  const env = { ...process.env, VK_ICD_FILENAMES: MESA }
  const files = ON_MESA.filter((name) => chosen.length === 0 || chosen.some((one) => name.includes(one)))
  const { status, stdout } = probed(env)
  if (status !== 0) console.log('The tables of operations are left out with the driver of Mesa that is here: it is too old (23 is needed).')
  else if (files.length > 0) {
    console.log(`The tables of operations run on: ${stdout.trim()}`)
    runs.push(await inNode(files, env))
  }
}
const pages = values.pages.split(',').filter((name) => chosen.length === 0 || chosen.some((one) => name.includes(one)))
const inPages =
  pages.length === 0
    ? null
    : await testInPages(pages.map((name) => (name === 'worker' ? 'test/webgpu/page/worker.page.ts' : `test/webgpu/device/${name}.device.ts`)))
if (inPages !== null) runs.push(inPages)
const total = (key) => runs.reduce((sum, run) => sum + run[key], 0)
if (runs.length > 1) console.log(`${total('passed')} passed, ${total('failed')} failed`)
process.exit(runs.some(({ code = 0 }) => code !== 0) || total('failed') > 0 ? 1 : 0)
