// tensorfx/webgpu: tensors and compiled graphs on the GPU. Importing it registers the backend 'webgpu' and the device 'webgpu'.
import { registerBackend } from '../dynamo/index.ts'
import { devices } from '../dispatch/index.ts'
import { deviceOperators } from '../inductor/webgpu/device.ts'
import { deviceCompiler } from '../inductor/pipeline.ts'
import { compileOnDevice } from '../inductor/webgpu/heapCode.ts'
import { webgpuBackend } from '../inductor/webgpu/deviceGraph.ts'
import { installFx } from '../install/fx.ts'
import { installTensors } from '../install/tensors.ts'

export { description, init, loseDevice, profile, stats, synchronize } from '../gpu/engine.ts'
export type { KernelTime } from '../gpu/clock.ts'
export type { DeviceProfile } from '../gpu/engine.ts'
export type { DeviceLimits, DeviceStats, InitOptions } from '../gpu/device.ts'
export { DeviceError, DeviceLostError, DeviceReadError } from '../gpu/errors.ts'
export { DeviceGraph, compileGraph, webgpuBackend } from '../inductor/webgpu/deviceGraph.ts'
export type { DeviceKernel, WebgpuCode } from '../inductor/webgpu/deviceGraph.ts'

installFx()
installTensors()
registerBackend('webgpu', webgpuBackend, { module: 'tensorfx/webgpu', staticShapes: true })
devices.operators = deviceOperators
deviceCompiler.compile = compileOnDevice
