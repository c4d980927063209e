//! The device memory of a step.

use std::rc::Rc;

use cudarc::driver::{CudaSlice, DevicePtr, sys::CUdeviceptr};

use crate::device::calls::copy_to_device;
use crate::device::gpu::Gpu;
use crate::model::verified::Verified;
use crate::timing::CudaError;
use crate::workload::mlp_training::model::{B1, B2, CLASSES, HIDDEN, PARAMETERS};
use crate::workload::mlp_training::problem::Training;
use crate::workload::mlp_training::verify::{Outputs, verified};
use crate::workload::network::format::Format;
use crate::workload::network::kernels::{Sums, partial_sums};
use crate::workload::network::tensor::Element;
use crate::workload::network::tensor::Tensor;

/// Places of f32 that the counter takes after the parameters and their moments.
const COUNTER_PLACES: usize = 16;

/// What a step reads and writes.
pub(super) struct Memory {
    pub(super) gpu: Rc<Gpu>,
    pub(super) problem: Rc<Training>,
    pub(super) format: Format,
    pub(super) inputs: Tensor,
    labels: CudaSlice<u32>,
    /// The parameters, their first and second moments, and the counter.
    state: Tensor,
    start: Tensor,
    /// The parameters in BF16, and those of the start.
    copies: Option<[Tensor; 2]>,
    pub(super) gradients: Tensor,
    pub(super) hidden: Tensor,
    pub(super) of_hidden: Tensor,
    pub(super) logits: Tensor,
    pub(super) of_logits: Tensor,
    /// The loss, and before it the sums of the blocks that add it up.
    loss: Tensor,
    /// How many of those blocks have arrived: zero between steps.
    arrived: CudaSlice<u32>,
    /// Sums over some of the rows, of which the gradients of both biases are made.
    partial: [Tensor; 2],
    /// Of the update in a kernel for each operation.
    pub(super) root: Option<Tensor>,
}

impl Memory {
    /// With the state that a step starts from, and the inputs in the format.
    pub(super) fn new(
        gpu: &Rc<Gpu>,
        problem: &Rc<Training>,
        format: Format,
        fused: bool,
    ) -> Result<Self, CudaError> {
        let element = format.element();
        let start = &problem.start;
        let mut state = [&start.parameters[..], &start.first, &start.second].concat();
        for value in start.counter.values() {
            // Two f32 hold the bits of a float64, the lower ones first.
            let bits = value.to_bits();
            state.extend([bits as u32, (bits >> 32) as u32].map(f32::from_bits));
        }
        state.resize(3 * PARAMETERS + COUNTER_PLACES, 0.0);
        let zeros = |element, len| Tensor::zeros(gpu, element, len);
        let rows = |element, width| zeros(element, problem.batch * width);
        let copy = || Tensor::of(gpu, Element::Bf16, &start.parameters);
        let memory = Self {
            inputs: Tensor::of(gpu, element, &problem.inputs)?,
            labels: gpu.upload(&problem.labels)?,
            state: Tensor::of(gpu, Element::F32, &state)?,
            start: Tensor::of(gpu, Element::F32, &state)?,
            copies: match element {
                Element::F32 => None,
                Element::Bf16 => Some([copy()?, copy()?]),
            },
            gradients: zeros(Element::F32, PARAMETERS)?,
            hidden: rows(element, HIDDEN)?,
            of_hidden: rows(element, HIDDEN)?,
            logits: rows(Element::F32, CLASSES)?,
            of_logits: rows(element, CLASSES)?,
            loss: zeros(Element::F32, problem.batch + 1)?,
            arrived: gpu.upload(&[0])?,
            partial: [
                zeros(Element::F32, partial_sums(problem.batch) * HIDDEN)?,
                zeros(Element::F32, partial_sums(problem.batch) * CLASSES)?,
            ],
            root: match fused {
                true => None,
                false => Some(zeros(Element::F32, PARAMETERS)?),
            },
            gpu: gpu.clone(),
            problem: problem.clone(),
            format,
        };
        gpu.synchronize()?;
        Ok(memory)
    }

    pub(super) fn batch(&self) -> usize {
        self.problem.batch
    }

    pub(super) fn labels(&self) -> CUdeviceptr {
        self.labels.device_ptr(self.gpu.stream()).0
    }

    pub(super) fn arrived(&self) -> CUdeviceptr {
        self.arrived.device_ptr(self.gpu.stream()).0
    }

    /// The parameters as the update sees them, from this place on.
    pub(super) fn parameters(&self, place: usize) -> CUdeviceptr {
        self.state.at(place)
    }

    /// The parameters as the products see them, from this place on.
    pub(super) fn operands(&self, place: usize) -> CUdeviceptr {
        match &self.copies {
            Some([copies, _]) => copies.at(place),
            None => self.parameters(place),
        }
    }

    /// The BF16 copies of the parameters, where the products read those.
    pub(super) fn copies(&self) -> Option<CUdeviceptr> {
        self.copies.as_ref().map(|[copies, _]| copies.address())
    }

    pub(super) fn first(&self) -> CUdeviceptr {
        self.state.at(PARAMETERS)
    }

    pub(super) fn second(&self) -> CUdeviceptr {
        self.state.at(2 * PARAMETERS)
    }

    pub(super) fn counter(&self) -> CUdeviceptr {
        self.state.at(3 * PARAMETERS)
    }

    pub(super) fn loss(&self) -> CUdeviceptr {
        self.loss.at(self.batch())
    }

    pub(super) fn partial_losses(&self) -> CUdeviceptr {
        self.loss.address()
    }

    /// Where the gradient of the first layer's bias goes.
    pub(super) fn of_b1(&self) -> Sums {
        Sums {
            width: HIDDEN,
            to: self.gradients.at(B1.start),
            partial: self.partial[0].address(),
        }
    }

    /// The same of the second layer's.
    pub(super) fn of_b2(&self) -> Sums {
        Sums {
            width: CLASSES,
            to: self.gradients.at(B2.start),
            partial: self.partial[1].address(),
        }
    }

    /// Enqueues that everything that a step writes, except its state, becomes NaN.
    pub(super) fn poison(&self) -> Result<(), CudaError> {
        let written = [
            &self.gradients,
            &self.partial[0],
            &self.partial[1],
            &self.hidden,
            &self.of_hidden,
            &self.logits,
            &self.of_logits,
            &self.loss,
        ];
        written
            .into_iter()
            .chain(&self.root)
            .try_for_each(Tensor::poison)
    }

    /// Enqueues that the batch is overwritten, so that an upload that never happens shows.
    pub(super) fn poison_inputs(&mut self) -> Result<(), CudaError> {
        self.inputs.poison()?;
        // Labels become zero, which most rows do not have. With an invalid one the kernels would
        // read far beyond the logits.
        let zeros = vec![0; self.labels.len()];
        let to = self.labels();
        // SAFETY: the slice has that many labels, and the wait keeps the zeros alive.
        unsafe { copy_to_device(&zeros, to, self.gpu.stream()) }?;
        self.gpu.synchronize()
    }

    /// Enqueues that the state is restored to that of the start.
    pub(super) fn restore(&self) -> Result<(), CudaError> {
        self.state.copy_from(&self.start)?;
        match &self.copies {
            Some([copies, start]) => copies.copy_from(start),
            None => Ok(()),
        }
    }

    /// Compares what lies in device memory with float64.
    pub(super) fn check(&self) -> Result<Verified, CudaError> {
        let loss = self.loss.values()?;
        self.check_with_loss(loss[self.batch()])
    }

    /// As [`check`](Self::check), with a loss that was downloaded before.
    pub(super) fn check_with_loss(&self, loss: f32) -> Result<Verified, CudaError> {
        let state = self.state.values()?;
        let (parameters, moments) = state.split_at(PARAMETERS);
        let (first, rest) = moments.split_at(PARAMETERS);
        let copies = (self.copies.as_ref())
            .map(|[copies, _]| copies.values())
            .transpose()?;
        let outputs = Outputs {
            hidden: &self.hidden.values()?,
            logits: &self.logits.values()?,
            loss,
            gradients: &self.gradients.values()?,
            parameters,
            first,
            second: &rest[..PARAMETERS],
            copies: copies.as_deref(),
        };
        Ok(verified(&self.problem, self.format, &outputs))
    }

    /// The step counter as it lies on the device.
    #[cfg(test)]
    pub(super) fn counted(&self) -> Result<[f64; 5], CudaError> {
        let state = self.state.values()?;
        let (pairs, _) = state[3 * PARAMETERS..].as_chunks::<2>();
        Ok(std::array::from_fn(|i| {
            let [low, high] = pairs[i].map(|half| u64::from(half.to_bits()));
            f64::from_bits(high << 32 | low)
        }))
    }

    /// Bytes of the parameters with their copies, moments and gradients.
    pub(super) fn bytes_of_parameters(&self) -> usize {
        let copies = self.copies.as_ref().map_or(0, |[copies, _]| copies.bytes());
        self.state.bytes() + copies + self.gradients.bytes()
    }

    /// Bytes of the batch and of what lies between the layers.
    pub(super) fn bytes_of_activations(&self) -> usize {
        let rows = [
            &self.inputs,
            &self.hidden,
            &self.of_hidden,
            &self.logits,
            &self.of_logits,
            &self.loss,
            &self.partial[0],
            &self.partial[1],
        ];
        let root = self.root.as_ref().map_or(0, Tensor::bytes);
        rows.map(Tensor::bytes).iter().sum::<usize>() + self.labels.num_bytes() + root
    }
}
