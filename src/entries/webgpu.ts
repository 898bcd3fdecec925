// tensorfx/webgpu: tensors and compiled graphs on the GPU. Importing it registers the backend 'webgpu' and the device 'webgpu'.
import { registerBackend } from '../dynamo/index.ts'
import type { Backend } from '../dynamo/index.ts'
import { devices } from '../dispatch/index.ts'
import { deviceOperators } from '../inductor/webgpu/device.ts'
import { writeBacksOf } from '../aot/meta/compiled.ts'
import { deviceCompiler } from '../inductor/pipeline.ts'
import { compileOnDevice } from '../inductor/webgpu/compileOnDevice.ts'
import { webgpuBackend } from '../inductor/webgpu/deviceGraph.ts'
import { installFx } from '../install/fx.ts'
import { installTensors } from '../install/tensors.ts'
import { description, init, loseDevice, profile, stats, synchronize } from '../gpu/engine.ts'
import { torchModules } from '../protocol/index.ts'

export { description, init, loseDevice, profile, stats, synchronize }
export type { KernelTime } from '../gpu/clock.ts'
export type { DeviceProfile } from '../gpu/engine.ts'
export type { DeviceLimits, DeviceStats, InitOptions } from '../gpu/device.ts'
export { DeviceError, DeviceLostError, DeviceReadError } from '../gpu/errors.ts'
export { DeviceGraph, compileGraph, webgpuBackend } from '../inductor/webgpu/deviceGraph.ts'
export type { DeviceKernel, WebgpuCode } from '../inductor/webgpu/deviceGraph.ts'

/** The backend 'webgpu': tensors that are on the GPU stay there. */
const backend: Backend = (gm, exampleInputs) => compileOnDevice(gm, exampleInputs, writeBacksOf(gm)) ?? webgpuBackend(gm, exampleInputs)

Object.assign(torchModules, { webgpu: { description, init, loseDevice, profile, stats, synchronize } })
installFx()
installTensors()
registerBackend('webgpu', Object.assign(backend, { compileAsync: webgpuBackend.compileAsync }), { module: 'tensorfx/webgpu', staticShapes: true })
devices.operators = deviceOperators
deviceCompiler.compile = compileOnDevice
