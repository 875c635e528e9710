"""L1-penalised logistic regressions of binary columns on each other: proximal Newton steps.

`node_path` solves, for one node i, the regression of x_i on the other columns,

    minimise over (b, theta)  sum_m w_m [log(1 + e^eta_m) - x_mi eta_m] + lam sum_j |theta_j|,

eta_m = b + sum_j theta_j x_mj, with row weights w that sum to one. `joint_solve` minimises the sum of these
losses over all nodes with theta_ij = theta_ji, each pair penalised once (the pseudo-likelihood).

Every step computes the whole gradient, which decides convergence (the largest violation of the optimality
conditions), takes as working set the nonzero coefficients and the violators, minimises the quadratic model
plus penalty over it by coordinate descent, and searches the line. Columns come as rows of a 0/1 float32
array, so that all inner loops run along contiguous memory. The coordinate descent, where the time goes, works
in single precision; gradients, losses and coefficients are double, so the solution is too.

The bias of a node is minimised out of the quadratic model: columns are centred at their mean under the
curvature weights, which makes them orthogonal to it, and the bias follows their steps. (In 0/1 coding bias
and columns are otherwise so alike that coordinate descent crawls.)

Symbols: ``eta`` (N,) linear predictor, ``residual`` w (P - x), ``curvature`` w P (1 - P), ``pull`` the
change of ``residual`` that the quadratic model predicts for the direction so far, ``center`` the mean of a
column under the curvature weights.
"""

from __future__ import annotations

import math

import numpy as np

from edgewise.kernels.compiling import entry, kernel

# Reassociation lets the dot products vectorise; nothing here tests for infinities or NaN.
_VECTOR = {"arrays": True, "fastmath": {"reassoc", "contract"}}

CURVATURE_FLOOR = 1e-6
SMALLEST_DIAGONAL = 1e-12
INNER_PASSES = 200
INNER_ACCURACY = 0.1
LINE_HALVINGS = 30


@kernel(**_VECTOR)
def _dot(column, vector):
    total = 0.0
    for m in range(vector.shape[0]):
        total += np.float64(column[m]) * vector[m]
    return total


@kernel(**_VECTOR)
def _short_dot(column, vector):
    total = np.float32(0.0)
    for m in range(vector.shape[0]):
        total += column[m] * vector[m]
    return total


@kernel(**_VECTOR)
def _add(scale, column, center, curvature, pull):
    short = np.float32(scale)
    middle = np.float32(center)
    for m in range(pull.shape[0]):
        pull[m] += short * (column[m] - middle) * curvature[m]


@kernel(**_VECTOR)
def _add_column(scale, column, eta):
    for m in range(eta.shape[0]):
        eta[m] += scale * column[m]


@kernel(**_VECTOR)
def _sum(vector):
    total = 0.0
    for m in range(vector.shape[0]):
        total += vector[m]
    return total


@kernel(arrays=True)
def _loss(eta, response, weights):
    """Weighted mean of log(1 + e^eta) - x eta, without overflow."""
    total = 0.0
    for m in range(eta.shape[0]):
        margin = eta[m] if response[m] == 0 else -eta[m]
        total += weights[m] * (max(margin, 0.0) + math.log1p(math.exp(-abs(margin))))
    return total


@kernel(arrays=True)
def _smallest_margin(eta, response):
    """Smallest signed distance of a row to the decision boundary; positive when all are right."""
    smallest = np.inf
    for m in range(eta.shape[0]):
        smallest = min(smallest, -eta[m] if response[m] == 0 else eta[m])
    return smallest


@kernel(arrays=True)
def _derivatives(eta, response, weights, residual, curvature):
    for m in range(eta.shape[0]):
        small = math.exp(-abs(eta[m]))
        probability = 1.0 / (1.0 + small) if eta[m] >= 0 else small / (1.0 + small)
        residual[m] = weights[m] * (probability - response[m])
        curvature[m] = weights[m] * max(small / ((1.0 + small) * (1.0 + small)), CURVATURE_FLOOR)


@kernel(arrays=True)
def _soft_step(value, gradient, curvature, penalty):
    """Minimiser of gradient d + curvature d^2 / 2 + penalty |value + d|."""
    target = curvature * value - gradient
    if target > penalty:
        return (target - penalty) / curvature - value
    if target < -penalty:
        return (target + penalty) / curvature - value
    return -value


@kernel(arrays=True)
def _violation(value, gradient, penalty):
    """How far one coefficient is from its optimality condition, in units of the gradient."""
    if value > 0:
        return abs(gradient + penalty)
    if value < 0:
        return abs(gradient - penalty)
    return max(abs(gradient) - penalty, 0.0)


@entry(arrays=True)
def node_path(columns, weights, node, lambdas, start, usable, tolerance, max_steps):
    """Solutions for one node at every lambda, each started from the one before.

    Returns coefficients (lambdas, p) with the bias at position `node`, the losses, the remaining
    violations of the optimality conditions, and the smallest margins.
    """
    n_variables, n_rows = columns.shape
    response = columns[node]
    coefficients = np.empty((lambdas.shape[0], n_variables))
    losses = np.empty(lambdas.shape[0])
    violations = np.empty(lambdas.shape[0])
    margins = np.empty(lambdas.shape[0])
    current = start.copy()
    eta = np.full(n_rows, current[node])
    for j in range(n_variables):
        if j != node and current[j] != 0.0:
            _add_column(current[j], columns[j], eta)
    residual = np.empty(n_rows)
    curvature = np.empty(n_rows, np.float32)
    pull = np.empty(n_rows, np.float32)
    change = np.empty(n_rows)
    trial = np.empty(n_rows)
    gradient = np.empty(n_variables)
    diagonal = np.empty(n_variables)
    center = np.empty(n_variables)
    direction = np.empty(n_variables)
    working = np.empty(n_variables, np.int64)
    for index in range(lambdas.shape[0]):
        penalty = lambdas[index]
        loss = _loss(eta, response, weights)
        violation = np.inf
        for _ in range(max_steps):
            _derivatives(eta, response, weights, residual, curvature)
            gradient[node] = _sum(residual)
            violation = abs(gradient[node])
            size = 0
            for j in range(n_variables):
                direction[j] = 0.0
                if j == node or not usable[j]:
                    continue
                gradient[j] = _dot(columns[j], residual)
                violation = max(violation, _violation(current[j], gradient[j], penalty))
                if current[j] != 0.0 or abs(gradient[j]) > penalty:
                    working[size] = j
                    size += 1
            if violation <= tolerance:
                break
            total = _sum(curvature)
            direction[node] = -gradient[node] / total
            pull[:] = direction[node] * curvature
            for k in range(size):
                j = working[k]
                mass = _dot(columns[j], curvature)
                center[j] = mass / total
                diagonal[j] = max(mass * (1.0 - center[j]), SMALLEST_DIAGONAL)
            for _ in range(INNER_PASSES):
                largest = 0.0
                for k in range(size):
                    j = working[k]
                    slope = gradient[j] + _short_dot(columns[j], pull)
                    step = _soft_step(current[j] + direction[j], slope, diagonal[j], penalty)
                    if step != 0.0:
                        direction[j] += step
                        direction[node] -= step * center[j]
                        _add(step, columns[j], center[j], curvature, pull)
                        largest = max(largest, abs(step) * diagonal[j])
                if largest <= INNER_ACCURACY * violation:
                    break
            decrease = gradient[node] * direction[node]
            change[:] = direction[node]
            for k in range(size):
                j = working[k]
                if direction[j] != 0.0:
                    _add_column(direction[j], columns[j], change)
                    decrease += gradient[j] * direction[j]
                    decrease += penalty * (abs(current[j] + direction[j]) - abs(current[j]))
            length = 1.0
            moved = False
            for _ in range(LINE_HALVINGS):
                extra = 0.0
                for k in range(size):
                    j = working[k]
                    extra += abs(current[j] + length * direction[j]) - abs(current[j])
                for m in range(n_rows):
                    trial[m] = eta[m] + length * change[m]
                trial_loss = _loss(trial, response, weights)
                if trial_loss - loss + penalty * extra <= 1e-4 * length * decrease + 1e-15:
                    moved = True
                    break
                length *= 0.5
            if not moved:
                break
            loss = trial_loss
            eta[:] = trial
            current[node] += length * direction[node]
            for k in range(size):
                j = working[k]
                current[j] += length * direction[j]
        coefficients[index] = current
        losses[index] = loss
        violations[index] = violation
        margins[index] = _smallest_margin(eta, response)
    return coefficients, losses, violations, margins


@entry(arrays=True)
def joint_solve(columns, weights, penalty, coefficients, usable, tolerance, max_steps):
    """Pseudo-likelihood solution at one lambda, found in place from the given coefficients.

    `coefficients` is symmetric with the biases on its diagonal. Unusable (constant) columns keep their
    bias and have no couplings. Returns the losses of the nodes, the remaining violation and the smallest
    margins of the nodes.
    """
    n_variables, n_rows = columns.shape
    eta = np.empty((n_variables, n_rows))
    residual = np.empty((n_variables, n_rows))
    curvature = np.empty((n_variables, n_rows), np.float32)
    pull = np.empty((n_variables, n_rows), np.float32)
    change = np.empty((n_variables, n_rows))
    trial = np.empty((n_variables, n_rows))
    gradient = np.zeros((n_variables, n_variables))
    direction = np.zeros((n_variables, n_variables))
    losses = np.zeros(n_variables)
    trial_losses = np.zeros(n_variables)
    totals = np.ones(n_variables)
    first = np.empty(n_variables * (n_variables - 1) // 2, np.int32)
    second = np.empty_like(first)
    diagonal = np.empty(first.shape[0])
    first_center = np.empty(first.shape[0])
    second_center = np.empty(first.shape[0])
    for i in range(n_variables):
        eta[i] = coefficients[i, i]
        for j in range(n_variables):
            if j != i and coefficients[i, j] != 0.0:
                _add_column(coefficients[i, j], columns[j], eta[i])
        losses[i] = _loss(eta[i], columns[i], weights)
    violation = np.inf
    for _ in range(max_steps):
        violation = 0.0
        for i in range(n_variables):
            _derivatives(eta[i], columns[i], weights, residual[i], curvature[i])
            if usable[i]:
                gradient[i, i] = _sum(residual[i])
                totals[i] = _sum(curvature[i])
                violation = max(violation, abs(gradient[i, i]))
        size = 0
        for i in range(n_variables):
            if not usable[i]:
                continue
            for j in range(i + 1, n_variables):
                if not usable[j]:
                    continue
                slope = _dot(columns[j], residual[i]) + _dot(columns[i], residual[j])
                gradient[i, j] = slope
                violation = max(violation, _violation(coefficients[i, j], slope, penalty))
                if coefficients[i, j] != 0.0 or abs(slope) > penalty:
                    first[size] = i
                    second[size] = j
                    mass = _dot(columns[i], curvature[j])
                    first_center[size] = mass / totals[j]
                    diagonal[size] = mass * (1.0 - first_center[size])
                    mass = _dot(columns[j], curvature[i])
                    second_center[size] = mass / totals[i]
                    diagonal[size] += mass * (1.0 - second_center[size])
                    diagonal[size] = max(diagonal[size], SMALLEST_DIAGONAL)
                    size += 1
        if violation <= tolerance:
            break
        direction[:] = 0.0
        for i in range(n_variables):
            if usable[i]:
                direction[i, i] = -gradient[i, i] / totals[i]
            pull[i] = direction[i, i] * curvature[i]
        for _ in range(INNER_PASSES):
            largest = 0.0
            for k in range(size):
                i = first[k]
                j = second[k]
                slope = gradient[i, j] + _short_dot(columns[j], pull[i]) + _short_dot(columns[i], pull[j])
                step = _soft_step(coefficients[i, j] + direction[i, j], slope, diagonal[k], penalty)
                if step != 0.0:
                    direction[i, j] += step
                    direction[i, i] -= step * second_center[k]
                    direction[j, j] -= step * first_center[k]
                    _add(step, columns[j], second_center[k], curvature[i], pull[i])
                    _add(step, columns[i], first_center[k], curvature[j], pull[j])
                    largest = max(largest, abs(step) * diagonal[k])
            if largest <= INNER_ACCURACY * violation:
                break
        decrease = 0.0
        for i in range(n_variables):
            change[i] = direction[i, i]
            decrease += gradient[i, i] * direction[i, i]
        for k in range(size):
            i = first[k]
            j = second[k]
            step = direction[i, j]
            if step != 0.0:
                _add_column(step, columns[j], change[i])
                _add_column(step, columns[i], change[j])
                decrease += gradient[i, j] * step
                decrease += penalty * (abs(coefficients[i, j] + step) - abs(coefficients[i, j]))
        length = 1.0
        moved = False
        for _ in range(LINE_HALVINGS):
            difference = 0.0
            for k in range(size):
                value = coefficients[first[k], second[k]]
                difference += abs(value + length * direction[first[k], second[k]]) - abs(value)
            difference *= penalty
            for i in range(n_variables):
                for m in range(n_rows):
                    trial[i, m] = eta[i, m] + length * change[i, m]
                trial_losses[i] = _loss(trial[i], columns[i], weights)
                difference += trial_losses[i] - losses[i]
            if difference <= 1e-4 * length * decrease + 1e-14:
                moved = True
                break
            length *= 0.5
        if not moved:
            break
        eta[:] = trial
        losses[:] = trial_losses
        for i in range(n_variables):
            coefficients[i, i] += length * direction[i, i]
        for k in range(size):
            i = first[k]
            j = second[k]
            coefficients[i, j] += length * direction[i, j]
            coefficients[j, i] = coefficients[i, j]
    margins = np.empty(n_variables)
    for i in range(n_variables):
        margins[i] = _smallest_margin(eta[i], columns[i])
    return losses, violation, margins
