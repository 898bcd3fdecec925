// npm run test:webgpu: the tests that need a GPU, or a driver that computes on the CPU in its place, in Node and then in pages of headless Chromium.
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
        'graphs,scalars,operators,faults,steps,late,tensors,captured,training,batch,complaints,profile,lost,fakes,limits,systems,sharing,emitted,worker',
    },
  },
})
// All drawn cases, but for the part that .ci/run tests.
if (!values['if-there']) process.env.TENSORFX_FULL = '1'
const probe = spawnSync(process.execPath, ['--input-type=module', '--eval', PROBE], { encoding: 'utf8' })
if (probe.status !== 0) {
  const reason = probe.stderr.split('\n').find((line) => /Error/.test(line)) ?? `the process ended with ${probe.status ?? probe.signal}`
  console.log(`The tests on the GPU are left out: there is none here (${reason.trim()}). On Debian: apt-get install chromium libvulkan1.`)
  process.exit(values['if-there'] ? 0 : 1)
}
console.log(`The tests run on: ${probe.stdout.trim()}`)

/** Runs the files with vitest. Resolves to its exit code, and the numbers of its last line. */
function inNode() {
  return new Promise((resolve) => {
    const child = spawn('npx', ['vitest', 'run', '--project', 'webgpu', ...chosen], { stdio: ['inherit', 'pipe', 'inherit'] })
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

const { code, passed, failed } = await inNode()
const pages = values.pages.split(',').filter((name) => chosen.length === 0 || chosen.some((one) => name.includes(one)))
const inPages =
  pages.length === 0
    ? null
    : await testInPages(pages.map((name) => (name === 'worker' ? 'test/webgpu/page/worker.page.ts' : `test/webgpu/device/${name}.device.ts`)))
if (inPages !== null) console.log(`${passed + inPages.passed} passed, ${failed + inPages.failed} failed`)
process.exit(code !== 0 || (inPages?.failed ?? 0) > 0 ? 1 : 0)
